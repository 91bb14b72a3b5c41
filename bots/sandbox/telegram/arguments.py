"""The parameters of one call, however they came: query, form, JSON or multipart."""

from __future__ import annotations

import json
from typing import Any, cast

from aiohttp import web

from bots.sandbox.telegram.errors import bad_request
from bots.sandbox.telegram.files import File


class Arguments:
    """Typed access to parameters. Raises `ApiError` 400 for what cannot be read as asked."""

    def __init__(self, values: dict[str, Any], uploads: dict[str, File]) -> None:
        self.values = values
        self.uploads = uploads

    def text(self, name: str) -> str:
        """A string; empty if absent."""
        value = self.values.get(name, "")
        text = value if isinstance(value, str) else json.dumps(value)
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise bad_request("strings must be encoded in UTF-8")
        return text

    def integer(self, name: str) -> int | None:
        """A whole number; `None` if absent or, as on the real server, not a number."""
        value = self.values.get(name)
        if isinstance(value, bool) or not isinstance(value, int | str):
            return None
        try:
            return int(value)
        except ValueError:
            return None

    def flag(self, name: str) -> bool:
        """A boolean; false if absent."""
        value = self.values.get(name)
        return value is True or (isinstance(value, str) and value.lower() in {"true", "yes", "1"}) or value == 1

    def object(self, name: str) -> dict[str, Any] | None:
        """A JSON object, serialised or not."""
        value = self._json(name)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise bad_request(f"object expected as {name.replace('_', ' ')}")
        return cast("dict[str, Any]", value)

    def array(self, name: str) -> list[Any] | None:
        """A JSON array, serialised or not."""
        value = self._json(name)
        if value is None:
            return None
        if not isinstance(value, list):
            raise bad_request(f"array expected as {name.replace('_', ' ')}")
        return cast("list[Any]", value)

    def _json(self, name: str) -> object:
        value = self.values.get(name)
        if not isinstance(value, str):
            return value
        if not value:
            return None
        try:
            return json.loads(value)
        except ValueError as error:
            raise bad_request(f"can't parse {name.replace('_', ' ')} JSON object") from error


async def read_arguments(request: web.Request) -> Arguments:
    """Read the call; what stands in the body wins over the query."""
    values: dict[str, Any] = dict(request.query)
    uploads: dict[str, File] = {}
    if request.content_type == "application/json":
        try:
            body = json.loads(await request.text() or "{}")
        except ValueError as error:
            raise bad_request("can't parse request body as JSON") from error
        if not isinstance(body, dict):
            raise bad_request("object expected as request body")
        values |= cast("dict[str, Any]", body)
    elif request.method == "POST":
        for name, value in (await request.post()).items():
            if isinstance(value, web.FileField):
                uploads[name] = File(value.filename, value.file.read(), value.content_type)
            elif isinstance(value, str):
                values[name] = value
    return Arguments(values, uploads)
