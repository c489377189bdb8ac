"""What a service takes beside its own object: a cluster IP, and node ports. Kept in the store, so that no two members
give the same away.

Mirrors kk/pkg/registry/core/service/storage/{alloc,storage}.go: each cluster IP is an IPAddress object whose creation
fails where another member was faster, and another is then taken (ipallocator/ipallocator.go); node ports are bits of
one RangeAllocation (portallocator). What was taken is given back where the service is refused, and when it goes. A
request that is cut off in mid-write leaves its address taken: whether the service was written is not known, and there
is no repair loop here. A service with a cluster IP costs the store a second write, one with node ports a third.
"""

from __future__ import annotations

import base64
import ipaddress
import random
from collections.abc import Callable, Iterator

import msgspec

from harness.apiserver.apierrors import FieldError, invalid, invalid_value
from harness.apiserver.auth.authentication import UserInfo
from harness.apiserver.deletion import Deletion
from harness.apiserver.model.capacity import Host
from harness.apiserver.model.costs import operation_cost
from harness.apiserver.registry import Caller, Registry, WritableStore
from harness.apiserver.resources import NODE_PORTS
from harness.apiserver.store.core import ABSENT, KeyValue, Txn
from harness.apiserver.strategies.base import Object
from harness.wire.status import StatusError, internal_error

FIRST_NODE_PORT, LAST_NODE_PORT = 30000, 32767  # --service-node-port-range
_PORT_KEY = NODE_PORTS.key(None, "range")
_TAKEN_IP = "provided IP is already allocated"
_TAKEN_PORT = "provided port is already allocated"
_WITH_PORTS = ("NodePort", "LoadBalancer")
_MANAGED = {"ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io"}
_encode = msgspec.json.Encoder().encode


class ServiceAllocator:
    """The allocations of one member. `known(address)` tells whether the member's cache has an IPAddress; `addresses`
    is the registry of these."""

    def __init__(
        self,
        cidr: str,
        addresses: Registry,
        known: Callable[[str], bool],
        store: WritableStore,
        host: Host,
        user: UserInfo,
        rng: random.Random,
    ) -> None:
        self.addresses = Addresses(cidr, addresses, known, host, user, rng)
        self.ports = NodePorts(store, rng)

    def claim(self, caller: Caller) -> Claim:
        return Claim(self, caller)

    async def release(self, old: Object) -> None:
        """Give back what a service that is gone had."""
        await self.addresses.release(addresses_of(old))
        await self.ports.release(ports_of(old))


class Claim:
    """What one write of a service takes."""

    def __init__(self, allocator: ServiceAllocator, caller: Caller) -> None:
        self._allocator = allocator
        self._dry_run = caller.dry_run
        self._addresses: set[str] = set()
        self._ports: set[int] = set()
        self._dropped: Object | None = None

    async def take(self, new: Object, old: Object | None) -> None:
        """Fill in what `new` needs and take what it asks for, beyond what `old` has; what an attempt before this one
        took is given back. Raises StatusError."""
        await self.give_back()
        self._dropped = old
        spec = new["spec"]
        if spec["type"] != "ExternalName":
            await self._take_address(new, addresses_of(old) if old else set())
        if spec["type"] in _WITH_PORTS:
            await self._take_ports(new, ports_of(old) if old else set())

    async def _take_address(self, new: Object, had: set[str]) -> None:
        spec = new["spec"]
        wanted = spec.get("clusterIP") or ""
        addresses = self._allocator.addresses
        if not wanted:
            spec["clusterIP"] = addresses.any_address if self._dry_run else await addresses.take_any(new)
            self._addresses.add(spec["clusterIP"])
        elif wanted != "None" and wanted not in had:
            addresses.check(new, wanted)
            if not self._dry_run:
                await addresses.take(new, wanted)
                self._addresses.add(wanted)
        spec["clusterIPs"] = [spec["clusterIP"], *(spec.get("clusterIPs") or ())[1:]]
        if self._dry_run:
            self._addresses.clear()

    async def _take_ports(self, new: Object, had: set[int]) -> None:
        spec = new["spec"]
        ports = spec.get("ports") or []
        asked = {port["nodePort"] for port in ports if port.get("nodePort")}
        if spec.get("healthCheckNodePort"):
            asked.add(spec["healthCheckNodePort"])
        lacking: list[tuple[Object, str]] = []
        if spec["type"] != "LoadBalancer" or spec.get("allocateLoadBalancerNodePorts") is not False:
            lacking = [(port, "nodePort") for port in ports if not port.get("nodePort")]
        local = spec.get("externalTrafficPolicy") == "Local"
        if spec["type"] == "LoadBalancer" and local and not spec.get("healthCheckNodePort"):
            lacking.append((spec, "healthCheckNodePort"))
        taken = await self._allocator.ports.take(new, asked - had, len(lacking), self._dry_run)
        for (place, key), number in zip(lacking, taken, strict=True):
            place[key] = number
        if not self._dry_run:
            self._ports = (asked - had) | set(taken)

    async def settle(self, new: Object | None) -> None:
        """The write has been made (`new` None: it has removed the service): what only the old object had is free."""
        if self._dry_run or self._dropped is None:
            return
        kept = (addresses_of(new), ports_of(new)) if new is not None else (set(), set())
        await self._allocator.addresses.release(addresses_of(self._dropped) - kept[0])
        await self._allocator.ports.release(ports_of(self._dropped) - kept[1])

    async def give_back(self) -> None:
        """The write was refused."""
        addresses, self._addresses = self._addresses, set()
        ports, self._ports = self._ports, set()
        await self._allocator.addresses.release(addresses)
        await self._allocator.ports.release(ports)


def addresses_of(service: Object) -> set[str]:
    spec = service["spec"]
    if spec.get("type") == "ExternalName":
        return set()
    return {address for address in spec.get("clusterIPs") or (spec.get("clusterIP"),) if address} - {"None"}


def ports_of(service: Object) -> set[int]:
    spec = service["spec"]
    if spec.get("type") not in _WITH_PORTS:
        return set()
    found = {port["nodePort"] for port in spec.get("ports") or () if port.get("nodePort")}
    return found | ({spec["healthCheckNodePort"]} if spec.get("healthCheckNodePort") else set())


class Addresses:
    """Cluster IPs of one range."""

    def __init__(
        self,
        cidr: str,
        registry: Registry,
        known: Callable[[str], bool],
        host: Host,
        user: UserInfo,
        rng: random.Random,
    ) -> None:
        self._network = ipaddress.ip_network(cidr)
        self._registry = registry
        self._known = known
        self._host = host
        self._caller = Caller(user)
        self._rng = rng
        self.any_address = str(self._network.network_address)  # what a dry run is told

    def check(self, service: Object, wanted: str) -> None:
        """Raises StatusError 422 for an address outside the range."""
        try:
            inside = ipaddress.ip_address(wanted) in self._network
        except ValueError:
            inside = False
        if not inside:
            why = f"the provided IP ({wanted}) is not in the valid range. The range of valid IPs is {self._network}"
            raise _refused(service, wanted, why)

    async def take(self, service: Object, wanted: str) -> None:
        if not await self._create(service, wanted):
            raise _refused(service, wanted, _TAKEN_IP)

    async def take_any(self, service: Object) -> str:
        """Dynamic addresses come from the upper part of the range while that has some (KEP-3070)."""
        for address in self._candidates():
            if not self._known(address) and await self._create(service, address):
                return address
        raise StatusError(internal_error("failed to allocate a serviceIP: range is full"))

    def _candidates(self) -> Iterator[str]:
        """Every address of the range but its first and last, from a random one on, the upper part first."""
        size = self._network.num_addresses - 2
        reserved = min(max(16, size // 16), 256)  # calculateRangeOffset
        reserved = reserved if reserved < size else 0
        for first, count in ((1 + reserved, size - reserved), (1, reserved)):
            start = self._rng.randrange(count) if count else 0
            for step in range(count):
                yield str(self._network[first + (start + step) % count])

    async def _create(self, service: Object, address: str) -> bool:
        """Whether it was free."""
        meta = service["metadata"]
        parent = {"resource": "services", "namespace": meta["namespace"], "name": meta["name"]}
        version = ipaddress.ip_address(address).version
        labels = {"ipaddress.kubernetes.io/ip-family": f"IPv{version}", **_MANAGED}
        new = {"metadata": {"name": address, "labels": labels}, "spec": {"parentRef": parent}}
        try:
            await self._registry.create(await self._paid("create"), new)
        except StatusError as error:
            if error.status.reason != "AlreadyExists":
                raise
            return False
        return True

    async def release(self, addresses: set[str]) -> None:
        for address in sorted(addresses):
            caller = msgspec.structs.replace(await self._paid("delete"), name=address)
            try:
                await self._registry.delete(caller, Deletion())
            except StatusError as error:
                if error.status.code != 404:
                    raise

    async def _paid(self, verb: str) -> Caller:
        """Upstream's allocator is a client of its own server, whose requests cost what others cost."""
        cost_us, etcd_us = operation_cost(self._host.costs, verb, "ipaddresses", "")
        await self._host.work(cost_us)
        return msgspec.structs.replace(self._caller, etcd_us=etcd_us)


def _refused(service: Object, address: str, why: str) -> StatusError:
    listed = service["spec"].get("clusterIPs") or [address]
    error = invalid_value("spec.clusterIPs", listed, f"failed to allocate IP {address}: {why}")
    return invalid("", "Service", service["metadata"]["name"], [error])


class _Range(msgspec.Struct):
    data: str


_decode = msgspec.json.Decoder(_Range).decode


class NodePorts:
    """One bit a port, in one object of the store; changed on the condition that nobody else has changed it."""

    def __init__(self, store: WritableStore, rng: random.Random) -> None:
        self._store = store
        self._rng = rng
        self._current: KeyValue | None = None
        self._read = False

    async def take(self, service: Object, asked: set[int], count: int, dry_run: bool) -> list[int]:
        """Take the ports `asked` for and `count` others, which are returned. Raises StatusError."""
        if not asked and not count:
            return []
        chosen: list[int] = []

        def change(bits: int) -> int:
            errors = [error for number in sorted(asked) for error in _port_errors(service, number, bits)]
            if errors:
                raise invalid("", "Service", service["metadata"]["name"], errors)
            for number in asked:
                bits |= _bit(number)
            chosen.clear()
            for _ in range(count):
                chosen.append(self._free(bits))
                bits |= _bit(chosen[-1])
            return bits

        await self._change(change, dry_run)
        return chosen

    async def release(self, ports: set[int]) -> None:
        if not ports:
            return
        mask = sum(_bit(number) for number in ports if FIRST_NODE_PORT <= number <= LAST_NODE_PORT)
        await self._change(lambda bits: bits & ~mask)

    def _free(self, bits: int) -> int:
        size = LAST_NODE_PORT - FIRST_NODE_PORT + 1
        start = self._rng.randrange(size)
        for step in range(size):
            number = FIRST_NODE_PORT + (start + step) % size
            if not bits & _bit(number):
                return number
        raise StatusError(internal_error("failed to allocate a nodePort: range is full"))

    async def _change(self, change: Callable[[int], int], dry_run: bool = False) -> None:
        """On what this member knows of it, then on what the store says it is."""
        if not self._read:
            self._current, self._read = (await self._store.get(_PORT_KEY)).kv, True
        while True:
            current = self._current
            try:
                bits = change(_bits(current))
            except StatusError:
                fresh = (await self._store.get(_PORT_KEY)).kv
                if _revision(fresh) == _revision(current):
                    raise
                self._current = fresh
                continue
            if dry_run:
                return
            value = _encoded(bits)
            result = await self._store.txn(Txn(_PORT_KEY, value, _revision(current)))
            if result.succeeded:
                created = result.revision if current is None else current.create_revision
                self._current = KeyValue(_PORT_KEY, value, created, result.revision)
                return
            self._current = result.current


def _revision(current: KeyValue | None) -> int:
    return ABSENT if current is None else current.mod_revision


def _bit(number: int) -> int:
    return 1 << (number - FIRST_NODE_PORT)


def _bits(current: KeyValue | None) -> int:
    return 0 if current is None else int.from_bytes(base64.b64decode(_decode(current.value).data), "big")


def _encoded(bits: int) -> bytes:
    data = bits.to_bytes((bits.bit_length() + 7) // 8, "big")
    return _encode(
        {
            "kind": NODE_PORTS.kind,
            "apiVersion": NODE_PORTS.api_version,
            "metadata": {},
            "range": f"{FIRST_NODE_PORT}-{LAST_NODE_PORT}",
            "data": base64.b64encode(data).decode(),
        }
    )


def _port_errors(service: Object, number: int, bits: int) -> list[FieldError]:
    inside = FIRST_NODE_PORT <= number <= LAST_NODE_PORT
    if inside and not bits & _bit(number):
        return []
    valid = f"{FIRST_NODE_PORT}-{LAST_NODE_PORT}"
    outside = f"provided port is not in the valid range. The range of valid ports is {valid}"
    spec = service["spec"]
    at = "spec.healthCheckNodePort"
    for index, port in enumerate(spec.get("ports") or ()):
        if port.get("nodePort") == number:
            at = f"spec.ports[{index}].nodePort"
            break
    return [invalid_value(at, number, _TAKEN_PORT if inside else outside)]
