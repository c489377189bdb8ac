"""Writing one resource: what rest.Store does between a handler and the store (as/registry/generic/registry/store.go).

Every write is decided on the object as the watch cache has it and made on the condition that the store still has that
version; where it has not, the decision is made again on what the store answered (GuaranteedUpdate,
as/storage/etcd3/store.go:510). Objects are stored without resourceVersion; what comes back from here has it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from harness.apiserver.admission import Admission, Attributes, Operation
from harness.apiserver.apierrors import (
    already_exists,
    bad_request,
    conflict,
    invalid,
    not_found,
    unclassified,
)
from harness.apiserver.apply.endpoints import FieldManagers
from harness.apiserver.apply.fieldmanager import settle_times
from harness.apiserver.auth.authentication import UserInfo
from harness.apiserver.cache.cachedobject import CachedObject, splice
from harness.apiserver.clock import Clock, Promise
from harness.apiserver.deletion import Deletion, Verdict, due_during_update
from harness.apiserver.resources import Resource
from harness.apiserver.schema import Schema
from harness.apiserver.store.core import ABSENT, GetResult, KeyValue, Txn, TxnResult
from harness.apiserver.strategies import Context, Strategy
from harness.apiserver.typed import Told, Types
from harness.wire.gotext import quote
from harness.wire.rfc3339 import seconds
from harness.wire.status import Cause, StatusError

Object = dict[str, Any]
Mutation = Callable[[Object, int], Object]
"""(object as stored, its revision) -> the object as it should be, a new one (the argument itself for a binding)."""

_WRONG_TYPE = (TypeError, AttributeError, KeyError, ValueError, IndexError)
_STATUS_ONLY = frozenset({"status", "binding"})  # a binding's node name has been checked with the binding
MAX_RETRIES_WHEN_CREATING = 8  # as/registry/generic/registry/store.go: with a generated name
_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode
_METADATA = b'"metadata":{'
_VERSION = b'"resourceVersion":"'


class WritableStore(Protocol):
    """What writing needs of `storage.Storage`."""

    def txn(self, txn: Txn, cost_us: float | None = None) -> Promise[TxnResult]: ...

    def get(self, key: str) -> Promise[GetResult]: ...


class Cache(Protocol):
    """What writing needs of a watch cache."""

    def get(self, key: str) -> CachedObject | None: ...


class Claim(Protocol):
    """What one write takes beside its object; see `serviceallocation`."""

    async def take(self, new: Object, old: Object | None) -> None: ...

    async def settle(self, new: Object | None) -> None: ...

    async def give_back(self) -> None: ...


class Allocator(Protocol):
    """What gives objects of a resource that which no two of them may have."""

    def claim(self, caller: Caller) -> Claim: ...

    async def release(self, old: Object) -> None: ...


class Caller(msgspec.Struct, frozen=True, gc=False):
    """Who writes what: `namespace` "" for cluster scope, `name` "" for what a body names. `etcd_us` is what a write
    costs etcd, None where it is no request's. `manager` is who will own the fields that change, "" where managedFields
    are settled already. `typed`: the object that is written came from a body that was decoded as its type, so that what
    is filled in here leaves it of that type."""

    user: UserInfo
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    dry_run: bool = False
    etcd_us: float | None = None
    manager: str = ""
    typed: bool = False


class Written(msgspec.Struct, frozen=True, gc=False):
    """The outcome of a write: the object's bytes, and whether it was created, deleted, or left as it was."""

    body: bytes
    created: bool = False
    deleted: bool = False


class _State(msgspec.Struct, gc=False):
    """An object as last read. `fresh`: from the store, not from the cache."""

    value: bytes
    revision: int
    fresh: bool

    def decode(self) -> Object:
        decoded: Object = _decode(self.value)
        return decoded


class Registry:
    """One resource. `allocator` gives its objects what must be unique (a service's cluster IP);
    `ttl_s` is how long what is written lasts, 0 for ever. `fields` keep its objects' managedFields."""

    def __init__(
        self,
        resource: Resource,
        strategy: Strategy,
        store: WritableStore,
        cache: Cache | None,
        admission: Admission,
        clock: Clock,
        rng: random.Random,
        allocator: Allocator | None = None,
        ttl_s: float = 0.0,
    ) -> None:
        self.resource = resource
        self._ttl_s = ttl_s
        self.fields = FieldManagers(resource, lambda: strategy.merged_by)
        self.strategy = strategy
        self._types = Types(strategy)
        self._store = store
        self._cache = cache
        self._admission = admission
        self._clock = clock
        self._rng = rng
        self._allocator = allocator
        self._context = Context("", rng)
        self._context_at = -1

    @property
    def structure(self) -> Schema:
        """The type of the bodies that this takes."""
        return self.strategy.structure

    def context(self) -> Context:
        """Chance and the current second."""
        at = int(self._clock.wall())
        if at != self._context_at:
            self._context_at = at
            self._context = Context(seconds(at), self._rng)
        return self._context

    # ---- create ----------------------------------------------------------------------------------------------------
    async def create(self, caller: Caller, new: Object) -> Written:
        """Write a new object, which is completed in place. Raises StatusError."""
        try:
            return await self._create(caller, new)
        except _WRONG_TYPE as error:
            self._types.explain(new, error)
            raise

    async def _create(self, caller: Caller, new: Object) -> Written:
        meta = new["metadata"]
        self._check_namespace(meta, caller.namespace)
        self.strategy.default(new)
        if "managedFields" in meta and caller.manager:
            self.fields.of(caller.subresource).update(None, new, caller.manager, self.context().now)
        attributes = self._attributes(Operation.CREATE, caller, meta.get("name", ""), new, None)
        await self._admission.create(attributes)
        generated = not meta.get("name") and bool(meta.get("generateName"))
        attempts = MAX_RETRIES_WHEN_CREATING if generated else 1
        while True:
            if generated:
                self.strategy.generate_name(meta, self._rng)
            self.strategy.fill_create(new, caller.namespace, self.context())
            self._check(new, self.strategy.metadata_errors(meta) + self.strategy.validate(new))
            if meta.get("resourceVersion"):
                raise unclassified("resourceVersion should not be set on objects to be created")
            attempts -= 1
            written = await self._insert_allocated(caller, new)
            if written is not None:
                return written
            if attempts <= 0:
                raise already_exists(self.resource, meta["name"], bool(meta.get("generateName")))

    async def _insert_allocated(self, caller: Caller, new: Object) -> Written | None:
        """As `_insert`, with what the object takes beside itself."""
        if self._allocator is None:
            return await self._insert(caller, new)
        claim = self._allocator.claim(caller)
        try:
            await claim.take(new, None)
            written = await self._insert(caller, new)
        except StatusError:
            await claim.give_back()
            raise
        if written is None:
            await claim.give_back()
        return written

    async def _insert(self, caller: Caller, new: Object) -> Written | None:
        """None where the key exists."""
        key = self.resource.key(caller.namespace, new["metadata"]["name"])
        value = self._types.encoded(new, False, None, caller.typed)
        if caller.dry_run:
            return None if (await self._store.get(key)).kv is not None else Written(value, created=True)
        result = await self._store.txn(Txn(key, value, ABSENT, self._ttl_s), caller.etcd_us)
        return Written(splice(value, result.revision), created=True) if result.succeeded else None

    # ---- update ----------------------------------------------------------------------------------------------------
    async def replace(self, caller: Caller, new: Object) -> Written:
        """PUT. Raises StatusError."""
        meta = new["metadata"]
        name = meta.get("name")
        if not name:
            why = "was undeterminable: name must be provided"
            raise bad_request(f"the name of the object ({caller.name} based on URL) {why}")
        if not isinstance(name, str) or name != caller.name:
            why = f"does not match the name on the URL ({caller.name})"
            raise bad_request(f"the name of the object ({name}) {why}")
        self._check_namespace(meta, caller.namespace)
        version, uid = meta.pop("resourceVersion", None), meta.get("uid")

        def put(old: Object, revision: int) -> Object:
            self._check_uid(caller, uid, old)
            self._check_version(version, revision, name)
            # Each attempt completes a copy: what it fills in must not stay when the next one starts.
            return {**new, "metadata": dict(meta)}

        try:
            return await self.update(caller, put)
        except StatusError as error:
            if error.status.code != 404 or not self.strategy.create_on_update or caller.subresource:
                raise
        return await self.create(caller, new)

    def _check_version(self, version: Any, revision: int, name: str) -> None:
        """Raises StatusError where a body demands another version than there is, or should demand one and does not."""
        if version in (None, "", "0"):
            if not self.strategy.unconditional_update:
                raise self._bad_version("0x0: must be specified for an update", name)
        elif not isinstance(version, str) or not version.isdecimal():
            shown = quote(str(version))
            raise self._bad_version(f"{shown}: strconv.ParseUint: parsing {shown}: invalid syntax", name)
        elif int(version) != revision:
            raise conflict(self.resource.group, self.resource.resource, name)

    def _bad_version(self, why: str, name: str) -> StatusError:
        cause = Cause("FieldValueInvalid", f"Invalid value: {why}", "metadata.resourceVersion")
        return invalid(self.resource.group, self.resource.kind, name, [cause])

    def _check_uid(self, caller: Caller, uid: str | None, old: Object) -> None:
        """A uid in the body is a precondition (as/storage/interfaces.go Preconditions.Check)."""
        there = old["metadata"].get("uid")
        if not uid or uid == there:
            return
        key = self.resource.key(caller.namespace, caller.name)
        text = (
            f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: "
            f"Precondition failed: UID in precondition: {uid}, UID in object meta: {there}"
        )
        raise conflict(self.resource.group, self.resource.resource, caller.name, text)

    async def update(
        self, caller: Caller, mutate: Mutation, prepare: str | None = None, told: Told | None = None
    ) -> Written:
        """Change an object by `mutate`, again on each newer version until it is written. Raises StatusError.

        `prepare` is the subresource whose rules apply, None for the caller's; under "binding" nothing is completed.
        `told` hears of fields that the type does not have.
        """
        key = self.resource.key(caller.namespace, caller.name)
        state = await self._read(key, caller.name)
        kind = caller.subresource if prepare is None else prepare
        claim = None if self._allocator is None else self._allocator.claim(caller)
        while True:
            try:
                new = self._changed(caller, mutate, state, kind, told)
                if claim is not None:
                    await claim.take(new, state.decode())
                value = self._types.encoded(new, kind in _STATUS_ONLY, told, caller.typed)
            except StatusError:
                if state.fresh:
                    if claim is not None:
                        await claim.give_back()
                    raise
                state = await self._reread(key, caller.name)  # a stale copy must not refuse
                continue
            if value == state.value:
                if state.fresh:
                    return Written(splice(value, state.revision))
                state = await self._reread(key, caller.name)  # only the store knows that nothing has changed
                continue
            if caller.dry_run:
                return Written(splice(value, state.revision))
            removes = due_during_update(self.resource, new)
            if removes:
                result = await self._store.txn(Txn(key, None, state.revision), caller.etcd_us)
            else:
                txn = Txn(key, value, state.revision, self._ttl_s)
                result = await self._store.txn(txn, caller.etcd_us)
            if result.succeeded:
                if claim is not None:
                    await claim.settle(None if removes else new)
                return Written(splice(value, result.revision))
            state = self._state(result.current, caller.name)

    def _changed(
        self, caller: Caller, mutate: Mutation, state: _State, kind: str, told: Told | None
    ) -> Object:
        """The new object, completed, admitted and valid."""
        old = state.decode()
        new = mutate(old, state.revision)
        if kind == "binding":
            return new
        if told is not None:
            new = self._types.known_at_the_top(new, told)
        try:
            return self._completed(caller, new, old, kind)
        except _WRONG_TYPE as error:
            self._types.explain(new, error, told)
            raise

    def _completed(self, caller: Caller, new: Object, old: Object, kind: str) -> Object:
        strategy = self.strategy
        if kind == "status":
            strategy.default_status(new)
        else:
            strategy.default(new)
        tracked = "managedFields" in old["metadata"] or "managedFields" in new["metadata"]
        if tracked and caller.manager:
            self.fields.of(caller.subresource).update(old, new, caller.manager, self.context().now)
        if kind == "finalize":
            spec = new.get("spec")
            strategy.fill_update(new, old, self.context())
            new["spec"] = spec or {}
        else:
            strategy.fill_update(new, old, self.context(), kind)
        self._admission.update(self._attributes(Operation.UPDATE, caller, caller.name, new, old))
        errors = strategy.metadata_update_errors(new["metadata"], old["metadata"])
        if not kind:
            errors += strategy.validate(new) + strategy.validate_update(new, old)
        elif kind == "status":
            errors += strategy.validate_status(new)
        else:
            errors += strategy.validate_subresource(kind, new, old)
        self._check(new, errors)
        if tracked:
            settle_times(new, old)
        return new

    # ---- delete ----------------------------------------------------------------------------------------------------
    async def delete(self, caller: Caller, deletion: Deletion) -> Written:
        """DELETE of one object; `deleted` says whether it is gone. Raises StatusError."""
        key = self.resource.key(caller.namespace, caller.name)
        outcome: _State | Written = await self._read(key, caller.name)
        while isinstance(outcome, _State):
            outcome = await self._delete_as(outcome, caller, deletion, key)
        return outcome

    async def _delete_as(
        self, state: _State, caller: Caller, deletion: Deletion, key: str
    ) -> _State | Written:
        """Delete the object as it is in `state`; a newer state where that has been overtaken."""
        old = state.decode()
        try:
            deletion.check(self.resource, old, state.revision)
            self._admission.delete(self._attributes(Operation.DELETE, caller, caller.name, None, old))
            verdict, new = deletion.decide(self.resource, self.strategy, old, self._clock.wall())
        except StatusError:
            if state.fresh:
                raise
            return await self._reread(key, caller.name)
        if verdict is Verdict.PENDING:
            if not state.fresh:
                return await self._reread(key, caller.name)
            return Written(splice(state.value, state.revision))
        value = state.value if new is None else _encode(self.strategy.ordered(new))
        if caller.dry_run:
            return Written(splice(value, state.revision), deleted=verdict is not Verdict.MARK)
        removes = verdict is Verdict.REMOVE
        result = await self._store.txn(Txn(key, None if removes else value, state.revision), caller.etcd_us)
        if not result.succeeded:
            return self._state(result.current, caller.name)
        if (
            verdict is Verdict.MARK_AND_REMOVE
        ):  # the end of the grace period is announced first, as upstream does
            result = await self._store.txn(Txn(key, None), caller.etcd_us)
        if self._allocator is not None and verdict is not Verdict.MARK:
            await self._allocator.release(old)
        return Written(splice(value, result.revision), deleted=verdict is not Verdict.MARK)

    async def read(self, caller: Caller) -> Object:
        """The object that `caller` names, as the cache has it, else as the store has it. Raises StatusError 404."""
        key = self.resource.key(caller.namespace, caller.name)
        return (await self._read(key, caller.name)).decode()

    # ---- helpers ---------------------------------------------------------------------------------------------------
    async def _read(self, key: str, name: str) -> _State:
        """As the cache has it, else as the store has it. Raises StatusError 404."""
        cached = self._cache.get(key) if self._cache is not None else None
        if cached is not None:
            return _State(unspliced(cached.body), cached.revision, False)
        return await self._reread(key, name)

    async def _reread(self, key: str, name: str) -> _State:
        return self._state((await self._store.get(key)).kv, name)

    def _state(self, found: KeyValue | None, name: str) -> _State:
        if found is None:
            raise not_found(self.resource, name)
        return _State(found.value, found.mod_revision, True)

    def _attributes(
        self, operation: Operation, caller: Caller, name: str, new: Object | None, old: Object | None
    ) -> Attributes:
        return Attributes(
            operation, self.resource, caller.subresource, caller.namespace, name, caller.user, new, old
        )

    def _check(self, new: Object, errors: list[Cause]) -> None:
        if errors:
            raise invalid(self.resource.group, self.resource.kind, new["metadata"].get("name", ""), errors)

    def _check_namespace(self, meta: Object, namespace: str) -> None:
        given = meta.get("namespace")
        if not given:
            return
        if given != (namespace if self.resource.namespaced else ""):
            raise bad_request(
                "the namespace of the provided object does not match the namespace sent on the request"
            )


def unspliced(body: bytes) -> bytes:
    """An object's bytes without the resourceVersion that `splice` put in: as the store has them."""
    at = body.index(_METADATA) + len(_METADATA)
    end = body.index(b'"', at + len(_VERSION)) + 1
    return body[:at] + body[end + 1 :] if body[end] == 0x2C else body[:at] + body[end:]  # a comma follows
