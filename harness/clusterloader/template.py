"""Templates of a test: files under one directory, rendered by a mapping, parsed as YAML.

Mirrors clusterloader2/pkg/config/template_provider.go: files and parsed templates are kept; a path is relative to the
config's directory, also one with a leading slash (pkg/test/simple_context.go: basepathFS).
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import gotpl
import msgspec

from harness.clusterloader.functions import template_functions
from harness.clusterloader.kinds import Kind, kind_of_object
from harness.clusterloader.positions import marked, origin, unclosed
from harness.documents.files import Files
from harness.documents.places import line_of
from harness.documents.yamltext import YamlError, documents, first_document
from harness.wire.errors import ConfigError

_PLACEHOLDER = re.compile(r"\{\{.*\}\}")
_NAME = "swarmlet-object-name"  # stands for an object's name in a text that is kept
_KEPT = 1024  # texts; enough for the cycle of any template seen
_SHOWN = 120  # characters of a rendered line that a message shows


class Document(NamedTuple):
    """A rendered config or module: what it says, and where in its file a key of it stands."""

    templates: TemplateProvider
    path: str
    mapping: Mapping[str, object]
    value: object

    def where(self, key: str) -> str:
        """``config.yaml:12``; the file alone where the key is not there, nor one that it would be in."""
        return self.templates.where(self.path, self.mapping, key)


class ObjectBody(NamedTuple):
    """An object to send, as JSON."""

    kind: Kind
    body: bytes


class TemplateProvider:
    """Renders the templates of one config directory.

    `rng` feeds RandInt and its like, `files` gives the texts. Every method raises ConfigError with one line: file,
    place, problem.
    """

    def __init__(self, root: Path, rng: random.Random, files: Files | None = None) -> None:
        self.root = root
        self._files = files or Files()
        self._functions = template_functions(rng, root, self._files)
        self._templates: dict[str, gotpl.Template] = {}
        self._kept: dict[tuple[str, str], tuple[ObjectBody, ...]] = {}
        self._raw: dict[str, tuple[Mapping[str, object], ...]] = {}

    def file(self, path: str) -> Path:
        """Where `path` of a config lies."""
        return self.root / path.lstrip("/")

    def exists(self, path: str) -> bool:
        """True where the file can be read; it is remembered from then on."""
        try:
            self._files.read(self.file(path))
        except (OSError, UnicodeDecodeError):
            return False
        return True

    def render(self, path: str, mapping: Mapping[str, object]) -> str:
        """The text of a template with its placeholders replaced."""
        template = self._templates.get(path)
        if template is None:
            template = self._templates[path] = self._parse(path)
        try:
            return template.render(mapping)
        except gotpl.TemplateError as error:
            raise ConfigError(self._explain(path, error)) from error

    def config(self, path: str, mapping: Mapping[str, object]) -> Document:
        """The first YAML document of a rendered config or module, {} where it is empty."""
        text = self.render(path, mapping)
        try:
            document = first_document(text)
        except YamlError as error:
            raise ConfigError(self._not_yaml(path, mapping, text, error)) from error
        return Document(self, path, mapping, {} if document is None else document)

    def where(self, path: str, mapping: Mapping[str, object], key: str) -> str:
        """File and line of a key of a rendered config."""
        line = line_of(self.render(path, mapping), key)
        return self._place(path, mapping, line) if line else str(self.file(path))

    def _place(self, path: str, mapping: Mapping[str, object], line: int) -> str:
        """File and line of the template that a line of its rendered text came from."""
        template = gotpl.Template(marked(self.text(path)), name=path, functions=self._functions)
        found = origin(template.render(mapping), line)
        return f"{self.file(path)}:{found}" if found else str(self.file(path))

    def objects(self, path: str, mapping: Mapping[str, object], name: str) -> tuple[ObjectBody, ...]:
        """The objects of a rendered object template with metadata.name set to `name`, ready to send.

        A template may render to nothing. Replicas of a bundle often differ in nothing but their name, and reading
        YAML takes six times as long as rendering it, so what a text became is kept under the text without its name.
        """
        text = self.render(path, mapping)
        if not name[:1].isalpha():  # a name that YAML might take for a number
            return self._bodies(path, mapping, text, name)
        key = (path, text.replace(name, _NAME))
        kept = self._kept.get(key)
        if kept is None:
            if len(self._kept) >= _KEPT:
                self._kept.clear()
            kept = self._kept[key] = self._bodies(path, mapping, key[1], _NAME)
        return tuple(ObjectBody(kind, body.replace(_NAME.encode(), name.encode())) for kind, body in kept)

    def _bodies(
        self, path: str, mapping: Mapping[str, object], text: str, name: str
    ) -> tuple[ObjectBody, ...]:
        found = self._objects(path, mapping, text)
        return tuple(ObjectBody(kind_of_object(obj), msgspec.json.encode(_named(obj, name))) for obj in found)

    def raw_objects(self, path: str) -> tuple[Mapping[str, object], ...]:
        """The objects of an unrendered template, its placeholders cut out: enough for apiVersion and kind."""
        found = self._raw.get(path)
        if found is None:
            found = self._raw[path] = tuple(self._objects(path, None, _PLACEHOLDER.sub("", self.text(path))))
        return found

    def _objects(self, path: str, mapping: Mapping[str, object] | None, text: str) -> list[dict[str, object]]:
        """The objects of a text; no `mapping` where it is not rendered."""
        try:
            found = list(documents(text))
        except YamlError as error:
            raise ConfigError(self._not_yaml(path, mapping, text, error)) from error
        objects: list[dict[str, object]] = []
        for document in found:
            if not isinstance(document, dict) or not document.get("kind") or not document.get("apiVersion"):
                raise ConfigError(f"{self.file(path)}: an object needs apiVersion and kind")
            objects.append(document)
        return objects

    def text(self, path: str) -> str:
        """The template as it is. Raises ConfigError."""
        file = self.file(path)
        try:
            return self._files.read(file)
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
            raise ConfigError(f"{file}: cannot be read: {reason}") from error

    def _parse(self, path: str) -> gotpl.Template:
        try:
            return gotpl.Template(self.text(path), name=str(self.file(path)), functions=self._functions)
        except gotpl.TemplateError as error:
            raise ConfigError(self._explain(path, error)) from error

    def _explain(self, path: str, error: gotpl.TemplateError) -> str:
        line = getattr(error, "line", None)
        message = getattr(error, "message", None) or str(error).partition(": ")[2]
        if message.endswith("unexpected EOF"):
            line, message = unclosed(self.text(path)) or line, "no {{end}} for this"
        where = f"{self.file(path)}:{line}" if line else str(self.file(path))
        lines = self.text(path).splitlines()
        shown = f": {lines[line - 1].strip()[:_SHOWN]}" if line and line <= len(lines) else ""
        return f"{where}: template: {' '.join(message.split())}{shown}"

    def _not_yaml(self, path: str, mapping: Mapping[str, object] | None, text: str, error: YamlError) -> str:
        lines = text.splitlines()
        at = min(error.line, len(lines))
        if mapping is None:
            return f"{self.file(path)}:{at}: not YAML without its placeholders: {error.problem}"
        shown = f" (rendered line {at}: {lines[at - 1].strip()[:_SHOWN]})" if at else ""
        return f"{self._place(path, mapping, at)}: not YAML once rendered: {error.problem}{shown}"


def _named(obj: Mapping[str, object], name: str) -> dict[str, object]:
    """`obj` with its name set, whatever the template says; generateName stays and has no effect."""
    metadata = obj.get("metadata")
    return {**obj, "metadata": {**(metadata if isinstance(metadata, dict) else {}), "name": name}}
