"""The way of a request through a member, in the order of as/server/config.go:1104-1196 (DefaultBuildHandlerChain).

Request info, deadline, authentication, impersonation, flow control, authorization, handler. Each request is a
coroutine; a client that goes cancels it wherever it waits, and what it held is given back. Modelled CPU time is paid
in two parts: the filters before authorization, so that refusals cost too, and the rest of the operation with its
handler.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Awaitable, Callable, Mapping
from random import Random

import msgspec

from harness.apiserver.auth.authentication import Authenticator, UserInfo
from harness.apiserver.auth.authorization import Authorizer, forbidden_status
from harness.apiserver.auth.impersonation import Impersonation
from harness.apiserver.cache.cacher import Cacher
from harness.apiserver.clock import Clock, Task, Timer, spawn
from harness.apiserver.deadlines import Deadlines
from harness.apiserver.exchange import Exchange
from harness.apiserver.flowcontrol import Admission, FlowController, MaxInFlight, Rejection
from harness.apiserver.flowcontrol.controller import wait_limit
from harness.apiserver.handlers import compression
from harness.apiserver.handlers.call import Answer, Call
from harness.apiserver.handlers.negotiate import PROTOBUF, negotiate, wants_pretty
from harness.apiserver.handlers.reading import check_ready
from harness.apiserver.handlers.shaping import prettied
from harness.apiserver.handlers.watching import watch_options
from harness.apiserver.metrics.requestmetrics import RequestMetrics, route_labels
from harness.apiserver.model.capacity import Host
from harness.apiserver.model.costs import operation_cost
from harness.apiserver.openwatch import OpenWatch, OpenWatches
from harness.apiserver.router import Endpoint, Router, read
from harness.apiserver.store.core import StoreError, StoreTimeout, StoreUnavailable
from harness.apiserver.strategies.base import new_uid
from harness.apiserver.views import protobuf
from harness.wire.gotext import parse_duration
from harness.wire.paths import PathError, RequestInfo, parse_path
from harness.wire.status import (
    APF_REJECTED,
    Status,
    StatusError,
    bad_request,
    internal_error,
    method_not_allowed,
    request_timeout,
    unauthorized,
    unclassified,
)

JSON = "application/json"
TEXT = "text/plain; charset=utf-8"
NOT_FOUND_TEXT = b"404 page not found\n"
_READS = frozenset({"get", "list"})

PageAnswer = tuple[int, str, bytes] | tuple[int, str, bytes, Mapping[str, str]] | None
Page = Callable[[RequestInfo, Exchange], PageAnswer | Awaitable[PageAnswer]]
"""What answers paths that are no resources: (status, content type, body), None for an unknown path."""


class Chain:
    """Serves exchanges. `pages` answer whatever is no resource."""

    def __init__(
        self,
        clock: Clock,
        host: Host,
        authenticator: Authenticator,
        impersonation: Impersonation,
        flow: FlowController | MaxInFlight,
        authorizer: Authorizer,
        router: Router,
        pages: Page,
        metrics: RequestMetrics,
        rng: Random,
        request_timeout_s: float,
        protobuf_answers: bool = False,
    ) -> None:
        self.clock = clock
        self.host = host
        self.authenticator = authenticator
        self.impersonation = impersonation
        self.flow = flow
        self.authorizer = authorizer
        self.router = router
        self.pages = pages
        self.metrics = metrics
        self.rng = rng
        self.request_timeout_s = request_timeout_s
        self.protobuf_answers = protobuf_answers
        self.deadlines = Deadlines(clock, request_timeout_s, host.slack_s)
        self.watches = OpenWatches(clock, flow.watches)

    @property
    def open_watches(self) -> int:
        return self.watches.count

    def handle(self, exchange: Exchange) -> None:
        """Answer one request; returns at once, or when it has been answered without waiting."""
        _Request(self, exchange).run()


class _Request:
    """One request under way."""

    __slots__ = (
        "_admission",
        "_answered",
        "_chain",
        "_counted",
        "_deadline",
        "_exchange",
        "_flow_headers",
        "_info",
        "_limit_s",
        "_started_at",
        "_task",
        "_waited_s",
    )

    def __init__(self, chain: Chain, exchange: Exchange) -> None:
        self._chain = chain
        self._exchange = exchange
        self._answered = False
        self._counted = False  # past authorization, and something that is served: what metrics see
        self._started_at = chain.clock.now()
        self._waited_s = 0.0
        self._flow_headers: dict[str, str] = {}
        self._admission: Admission | None = None
        self._deadline: Timer | None = None  # where the client asked for less than the server's own limit
        self._limit_s: float | None = None
        self._info: RequestInfo | None = None
        self._task: Task[None] | None = None

    def run(self) -> None:
        task = spawn(self._serve())
        if not task.outcome.done:
            self._task = task
            self._arm()
            self._exchange.on_gone(self._gone)

    # ---- life ------------------------------------------------------------------------------------------------------
    def _gone(self) -> None:
        """The client has left before its answer was complete."""
        if self._task is not None and not self._task.outcome.done:
            if self._counted and self._info is not None and self._info.verb != "watch":
                self._chain.metrics.aborted(self._info)
            self._task.cancel()

    def _arm(self) -> None:
        """It waits; a request that was answered at once never needs a deadline."""
        chain, limit_s = self._chain, self._limit_s
        if limit_s is None or self._answered:
            return
        if limit_s == chain.request_timeout_s:
            chain.deadlines.add(self, self._started_at)
        else:
            self._deadline = chain.clock.call_at(self._started_at + limit_s, self.time_out)

    def time_out(self) -> None:
        """Its deadline has come."""
        assert self._task is not None
        if self._task.outcome.done or self._answered:
            return
        self._task.cancel()
        self._refuse(request_timeout())
        if self._info is not None:
            self._chain.metrics.terminated(self._info, 504)

    async def _serve(self) -> None:
        try:
            await self._steps()
        except StatusError as error:
            self._refuse(error.status)
        except StoreError as error:
            self._refuse(store_status(error))
        except RecursionError:
            # Nothing here recurses but along what a client sent. encoding/json gives up in the same words, at 10,000.
            self._refuse(bad_request("exceeded max depth"))
        except Exception as error:
            self._fail(error)
        finally:
            if self._deadline is not None:
                self._deadline.cancel()
            elif self._task is not None:
                self._chain.deadlines.remove(self)
            if self._admission is not None:
                self._admission.cancel()  # leaves the queue, or gives the seats back

    def _fail(self, error: Exception) -> None:
        """A fault of ours: the client hears of it as of a panic upstream, and one line goes to the log."""
        trace = "".join(traceback.format_exception(error)).replace("\n", "\\n")
        print(
            f"error: {self._exchange.method[:20]} {self._exchange.path[:500]}: {trace}",
            file=sys.stderr,
            flush=True,
        )
        if self._answered:
            self._exchange.abort()
        else:
            self._refuse(internal_error(f"{type(error).__name__}: {error}"))

    # ---- the chain -------------------------------------------------------------------------------------------------
    async def _steps(self) -> None:
        chain, exchange = self._chain, self._exchange
        try:
            info = self._info = parse_path(exchange.path, exchange.method)
        except PathError as error:
            raise StatusError(unclassified(f"failed to get request info: {error}")) from None
        watch = info.verb == "watch"
        deadline_s = self._limit_s = None if watch else self._deadline_s(info)
        user = chain.authenticator.authenticate(exchange.headers, exchange.certificate)
        if user is None:
            raise StatusError(unauthorized())
        user = chain.impersonation.impersonate(user, info, exchange.headers)
        if not await self._admitted(user, info, deadline_s):
            return
        costs = chain.host.costs
        await chain.host.work(costs.filters_us)
        decision = chain.authorizer.authorize(user, info)
        if not decision.allowed:
            if decision.missed:
                decision = await chain.authorizer.ask_again(user, info)
            if not decision.allowed:
                await chain.host.work(costs.forbidden_us - costs.filters_us)
                raise StatusError(forbidden_status(user, info, decision.reason))
        if not info.is_resource:
            await self._page(info)
        elif not chain.router.serves_group(info):
            self._respond(404, TEXT, NOT_FOUND_TEXT, {})
        elif watch:
            await self._watch(user, info)
        else:
            await self._unary(user, info)

    def _deadline_s(self, info: RequestInfo) -> float:
        """The server's limit, or less where the client asks for it (as/endpoints/filters/request_deadline.go)."""
        limit_s = self._chain.request_timeout_s
        text = info.query.get("timeout", "")
        if not text:
            return limit_s
        wanted_s = parse_duration(text)
        if wanted_s is None:
            why = f'time: invalid duration "{text}"'
            raise StatusError(bad_request(f'invalid timeout specified in the request URL - "{text}": {why}'))
        return min(wanted_s, limit_s) if wanted_s > 0 else limit_s

    async def _admitted(self, user: UserInfo, info: RequestInfo, deadline_s: float | None) -> bool:
        """Wait for seats; False where the request was turned away and has been answered."""
        chain = self._chain
        limit_s = wait_limit(deadline_s, chain.request_timeout_s)
        admission = self._admission = chain.flow.admit(user, info, wait_limit_s=limit_s)
        outcome = await admission
        self._flow_headers = outcome.headers
        if isinstance(outcome, Rejection):
            self._reject(outcome)
            return False
        self._waited_s = outcome.waited_s
        return True

    def _reject(self, rejection: Rejection) -> None:
        assert self._info is not None
        self._chain.host.charge(self._chain.host.costs.rejected_us)
        self._chain.metrics.rejected(self._info)
        headers = {"retry-after": str(rejection.retry_after_s), "x-content-type-options": "nosniff"}
        self._respond(429, TEXT, APF_REJECTED, headers, count=False)

    # ---- handlers --------------------------------------------------------------------------------------------------
    async def _page(self, info: RequestInfo) -> None:
        costs = self._chain.host.costs
        await self._chain.host.work(costs.discovery_us - costs.filters_us)
        page = self._chain.pages(info, self._exchange)
        if isinstance(page, Awaitable):
            page = await page
        self._counted = page is not None
        status, content_type, body = (404, TEXT, NOT_FOUND_TEXT) if page is None else page[:3]
        more = dict(page[3]) if page is not None and len(page) == 4 else {}
        if status >= 400:
            more["x-content-type-options"] = "nosniff"
        elif content_type.startswith(JSON) and body and self._is_indented(info):
            body = prettied(body)
        self._respond(status, content_type, body, more)

    def _is_indented(self, info: RequestInfo) -> bool:
        """Whether a page of JSON is: what is no API object always is (responsewriters.WriteRawJSON), discovery for whom
        it is to be."""
        if info.path in ("/", "/version"):
            return True
        return info.path.startswith("/api") and wants_pretty(self._exchange.headers, info.query)

    def _call(self, user: UserInfo, info: RequestInfo, endpoint: Endpoint) -> Call:
        headers = self._exchange.headers
        if (
            self._exchange.method == "HEAD"
        ):  # resources have routes for GET, not for HEAD (as/endpoints/installer.go)
            raise StatusError(method_not_allowed())
        representation = negotiate(
            headers.get("accept", ""), self._chain.protobuf_answers, bool(endpoint.resource.custom)
        )
        if wants_pretty(headers, info.query):
            representation = msgspec.structs.replace(representation, pretty=True)
        return Call(
            self._exchange,
            info,
            user,
            endpoint.resource,
            endpoint.registry,
            self._chain.clock.wall,
            representation,
        )

    async def _unary(self, user: UserInfo, info: RequestInfo) -> None:
        chain = self._chain
        costs = chain.host.costs
        endpoint = chain.router.find(info)
        self._counted = True
        call = self._call(user, info, endpoint)
        if info.verb in _READS:
            try:
                outcome = await read(call, endpoint.reader)
            except StatusError:
                await chain.host.work(costs.forbidden_us - costs.filters_us)
                raise
            answer = outcome.answer
            cost, _ = operation_cost(
                costs,
                info.verb,
                info.resource,
                info.subresource,
                answer.objects,
                consistent=outcome.consistent,
                from_etcd=outcome.from_store,
            )
            await chain.host.work(cost - costs.filters_us)
        else:
            cost, call.etcd_us = operation_cost(costs, info.verb, info.resource, info.subresource)
            await chain.host.work(cost - costs.filters_us - endpoint.source.informers_us)
            answer = await chain.router.write(call)
            if info.verb == "deletecollection":
                await chain.host.work(cost * (answer.objects - 1))
        if call.representation.pretty and answer.content_type == JSON:
            answer.body = prettied(answer.body)
        if compression.is_wanted(answer, self._exchange.headers):
            await chain.host.work(costs.gzip_kib_us * len(answer.body) / 1024)
            compression.compress(answer)
        self._answer(answer)

    async def _watch(self, user: UserInfo, info: RequestInfo) -> None:
        chain = self._chain
        endpoint = chain.router.find(info)
        self._counted = True
        call = self._call(user, info, endpoint)
        costs = chain.host.costs
        options = watch_options(call, None if self._exchange.http2 else costs.watch_event_http1_us)
        await chain.host.work(costs.watch_open_us - costs.filters_us)
        if isinstance(endpoint.source, Cacher):
            check_ready(endpoint.source)
        required = options.fields.required if options.fields is not None else _requires_nothing
        self._answered = True  # from here on what goes wrong is said in the stream
        watch = OpenWatch(
            chain.watches,
            self._exchange,
            self._headers(protobuf.STREAM if call.representation.media_type == PROTOBUF else JSON, {}),
            chain.metrics.watch(info),
            self._admission,
            self._started_at,
            self._waited_s,
        )
        self._admission = None  # the seats are the watch's, until its initial events are queued
        watch.begin(endpoint.source, options, info, required)
        self._exchange.on_gone(watch.gone, instead=True)  # and all that this request was is let go

    # ---- answers ---------------------------------------------------------------------------------------------------
    def _headers(self, content_type: str, more: dict[str, str]) -> dict[str, str]:
        return {
            "audit-id": new_uid(self._chain.rng),
            "cache-control": "no-cache, private",
            "content-type": content_type,
            **self._flow_headers,
            **more,
        }

    def _answer(self, answer: Answer) -> None:
        self._respond(answer.status, answer.content_type, answer.body, dict(answer.headers))

    def _refuse(self, status: Status) -> None:
        headers = {}
        if status.retry_after_header is not None:
            headers["retry-after"] = status.retry_after_header
        if status.code == 403:
            headers["x-content-type-options"] = "nosniff"
        body = status.body()
        if self._chain.protobuf_answers and self._wants_protobuf():
            self._respond(status.http_status, PROTOBUF, protobuf.encoded(body), headers)
            return
        if wants_pretty(self._exchange.headers, {} if self._info is None else self._info.query):
            body = prettied(body)
        self._respond(status.http_status, JSON, body, headers)

    def _wants_protobuf(self) -> bool:
        """Whether an error is to be told in protobuf: in that of the request's answer, JSON where it has none."""
        if self._info is None or not self._info.is_resource:
            return False
        try:
            return negotiate(self._exchange.headers.get("accept", ""), True).media_type == PROTOBUF
        except StatusError:
            return False

    def _respond(
        self, status: int, content_type: str, body: bytes, more: dict[str, str], count: bool = True
    ) -> None:
        self._answered = True
        if count and self._counted and self._info is not None:
            duration_s = self._chain.clock.now() - self._started_at
            labels = route_labels(self._info)
            self._chain.metrics.answered(labels, status, duration_s, self._waited_s, len(body))
        if self._exchange.method == "HEAD":
            body = b""
        self._exchange.respond(status, self._headers(content_type, more), body)


def _requires_nothing(field: str) -> None:
    return None


def store_status(error: StoreError) -> Status:
    """What a client hears when etcd does not answer (as/storage/etcd3/errors.go; unclassified, hence code 500)."""
    if isinstance(error, StoreTimeout | StoreUnavailable):
        return unclassified(str(error))
    return internal_error(str(error))
