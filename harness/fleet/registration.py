"""How a kubelet joins: wait for the API server, register the Node, initialise the CSINode. Two loops side by side.

Node (kk/pkg/kubelet/kubelet_node_status.go, registerWithAPIServer): POST after 100 ms, then x2 up to 7 s until it is
there; 409 means it is from an earlier life, and its status is reported anew.
CSINode (kk/pkg/volume/csi/csi_plugin.go and nodeinfomanager.go): GET it at resourceVersion 0 each second until the
server answers 200 or 404; then, four tries 10, 50 and 250 ms apart, all again after 15 ms x6: GET node, GET csinode,
and where that is missing POST it. Until then the node is not ready.
"""

from __future__ import annotations

from enum import Enum

import msgspec

from harness.client.machine import Answered, Arm, Event, Failed, Fired, Send
from harness.client.requests import CSINODES, NODES, create_, get_
from harness.fleet.context import Context, Out, parsed

PART = "registration"
_FIRST_STEP_S, _STEP_CAP_S = 0.1, 7.0
_CSI_POLL_S = 1.0
_CSI_TRIES = 4  # updateBackoff: 10 ms, factor 5, 4 steps, jitter 0.1
_CSI_FIRST_S, _CSI_FACTOR = 0.01, 5.0
_CSI_AGAIN_S, _CSI_AGAIN_FACTOR = 0.015, 6.0  # initBackoff: 15 ms, factor 6, jitter 0.1
_CSI_JITTER = 0.1
_CSI_AGAIN_CAP_S = (
    140.0  # initBackoff's six steps last 140 s in all; then a kubelet exits and is started anew
)


class CSIState(Enum):
    """Where the CSINode loop is."""

    WAITING = "waiting for the API server"
    NODE = "GET node"
    READING = "GET csinode"
    CREATING = "POST csinode"
    BACKOFF = "waiting before another try"
    DONE = "initialised"


class _Metadata(msgspec.Struct, frozen=True, gc=False):
    uid: str = ""


class _View(msgspec.Struct, frozen=True, gc=False):
    metadata: _Metadata


_DECODER = msgspec.json.Decoder(_View)


class Registration:
    """`registered` and `initialised` turn True once each; the owner looks after every call."""

    __slots__ = ("_again_s", "_context", "_csi_s", "_csi_tries", "_step_s", "_uid", "csi", "registered")

    def __init__(self, context: Context) -> None:
        self._context = context
        self.csi = CSIState.WAITING
        self.registered = False
        self._uid = ""
        self._step_s = _FIRST_STEP_S
        self._csi_tries = 0
        self._csi_s = _CSI_FIRST_S
        self._again_s = _CSI_AGAIN_S

    def start(self, now: float, out: Out) -> None:
        self._wait_for_server(out)
        out.append(Arm((PART, "node"), now + self._step_s))

    @property
    def initialised(self) -> bool:
        return self.csi is CSIState.DONE

    def handle(self, event: Event, body: bytes, now: float, out: Out) -> None:
        """`body` is the Node to register, wanted when the timer of the node loop fires."""
        if event.key[1] == "csi":
            self._csi(event, now, out)
        elif isinstance(event, Fired):
            out.append(Send((PART, "node"), create_(NODES, None, body)))
        elif isinstance(event, Answered | Failed):
            self._node(event, now, out)

    # ---- the Node ----------------------------------------------------------------------------------------------------
    def _node(self, event: Answered | Failed, now: float, out: Out) -> None:
        response = event.response if isinstance(event, Answered) else None
        if response is not None and response.ok:
            self.registered = True
        elif response is not None and response.status == 409:
            out.append(Send((PART, "node"), get_(NODES, None, self._context.name)))
        else:
            self._step_s = min(2 * self._step_s, _STEP_CAP_S)
            out.append(Arm((PART, "node"), now + self._step_s))

    # ---- the CSINode -------------------------------------------------------------------------------------------------
    def _csi(self, event: Event, now: float, out: Out) -> None:
        status = event.response.status if isinstance(event, Answered) else 0
        if self.csi is CSIState.WAITING:
            if isinstance(event, Fired):
                self._wait_for_server(out)
            elif status in (200, 404):
                self._read_node(out)
            else:
                out.append(Arm((PART, "csi"), now + _CSI_POLL_S))
        elif isinstance(event, Fired):
            self._read_node(out)
        elif self.csi is CSIState.NODE and self._found_node(event):
            self.csi = CSIState.READING
            out.append(Send((PART, "csi"), get_(CSINODES, None, self._context.name)))
        elif self.csi is CSIState.READING and status == 404:
            self.csi = CSIState.CREATING
            out.append(Send((PART, "csi"), create_(CSINODES, None, self._csinode())))
        elif self.csi in (CSIState.READING, CSIState.CREATING) and 200 <= status < 300:
            self.csi = CSIState.DONE
        else:
            self._csi_failed(now, out)

    def _found_node(self, event: Event) -> bool:
        view = parsed(_DECODER, event.response) if isinstance(event, Answered) else None
        if view is not None:
            self._uid = view.metadata.uid
        return view is not None

    def _wait_for_server(self, out: Out) -> None:
        out.append(Send((PART, "csi"), get_(CSINODES, None, self._context.name, resource_version="0")))

    def _read_node(self, out: Out) -> None:
        self.csi = CSIState.NODE
        out.append(Send((PART, "csi"), get_(NODES, None, self._context.name)))

    def _csi_failed(self, now: float, out: Out) -> None:
        self.csi = CSIState.BACKOFF
        self._csi_tries += 1
        if self._csi_tries < _CSI_TRIES:
            wait_s = self._csi_s
            self._csi_s *= _CSI_FACTOR
        else:
            wait_s = self._again_s
            self._again_s = min(self._again_s * _CSI_AGAIN_FACTOR, _CSI_AGAIN_CAP_S)
            self._csi_tries, self._csi_s = 0, _CSI_FIRST_S
        out.append(Arm((PART, "csi"), now + wait_s * (1.0 + _CSI_JITTER * self._context.rng.random())))

    # ---- requests ----------------------------------------------------------------------------------------------------
    def _csinode(self) -> bytes:
        return (
            '{"kind":"CSINode","apiVersion":"storage.k8s.io/v1",'
            f'"metadata":{{"name":"{self._context.name}","ownerReferences":[{{"apiVersion":"v1","kind":"Node",'
            f'"name":"{self._context.name}","uid":"{self._uid}"}}]}},"spec":{{"drivers":[]}}}}'
        ).encode()
