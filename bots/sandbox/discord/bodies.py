"""Bodies of requests: read, checked against the documented limits, and refused as Discord refuses them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from aiohttp import BodyPartReader, web

from bots.sandbox.discord import errors
from bots.sandbox.discord.model import AllowedMentions, File, JsonObject, Poll

MAX_CONTENT = 2000
MAX_EMBEDS = 10
MAX_EMBED_TEXT = 6000
MAX_ROWS = 5
MAX_NONCE = 25

_BUTTON, _TEXT_SELECT = 2, 3
_LINK_STYLE = 5


@dataclass(slots=True)
class Body:
    """A request's JSON and the files beside it; `files` is keyed by n of `files[n]`."""

    json: JsonObject
    files: dict[str, File] = field(default_factory=dict[str, File])


BODY = web.RequestKey("BODY", Body)
"""Where the guard leaves the body that it has read, for the routes."""


async def read(request: web.Request) -> Body:
    """Read JSON, or multipart with `payload_json` and `files[n]` (API reference, Uploading Files)."""
    if not request.content_type.startswith("multipart/"):
        return Body(_parse(await request.read()))
    body = Body({})
    async for part in await request.multipart():
        if not isinstance(part, BodyPartReader):
            raise errors.invalid_json()
        data = bytes(await part.read(decode=True))
        if part.name == "payload_json":
            body.json = _parse(data)
        elif part.name is not None and part.name.startswith("files[") and part.name.endswith("]"):
            kind = part.headers.get("Content-Type")
            body.files[part.name[6:-1]] = File(part.filename or "unnamed", data, kind)
    return body


def answer(data: object, status: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    """A JSON answer, its type bare: clients compare it with `application/json` exactly."""
    body = json.dumps(data, separators=(",", ":")).encode()
    return web.Response(body=body, status=status, headers=headers, content_type="application/json")


def _parse(data: bytes) -> JsonObject:
    try:
        value: object = json.loads(data or b"{}")
    except ValueError:
        raise errors.invalid_json() from None
    if not isinstance(value, dict):
        raise errors.invalid_json()
    return cast("JsonObject", value)


def objects(value: object) -> list[JsonObject]:
    """A JSON array of objects; null and absent are empty."""
    return cast("list[JsonObject]", value) if isinstance(value, list) else []


def uploaded(body: Body, described: list[JsonObject]) -> list[File]:
    """The files in the order sent, with the names and descriptions that `attachments` gives them."""
    files: list[File] = []
    for number, file in body.files.items():
        about = next((item for item in described if str(item.get("id")) == number), JsonObject())
        name = str(about.get("filename") or file.name)
        files.append(
            File(
                name,
                file.data,
                file.content_type,
                description=about.get("description"),
                duration_secs=about.get("duration_secs"),
                waveform=about.get("waveform"),
            )
        )
    return files


def check_message(fields: JsonObject, *, prefix: str = "") -> None:
    """Hold a message's fields against the limits of Create Message.

    `prefix` stands before the field names in the error (`data.` for interaction callbacks).
    """
    content = fields.get("content")
    if content is not None and not isinstance(content, str):
        raise errors.invalid_form(f"{prefix}content", "BASE_TYPE_STRING", "Could not interpret value as string.")
    if len(content or "") > MAX_CONTENT:
        raise errors.too_long(f"{prefix}content", MAX_CONTENT)
    if len(str(fields.get("nonce") or "")) > MAX_NONCE:
        raise errors.too_long(f"{prefix}nonce", MAX_NONCE)
    _check_embeds(objects(fields.get("embeds")), prefix)
    _check_rows(objects(fields.get("components")), prefix)


def _check_embeds(embeds: list[JsonObject], prefix: str) -> None:
    if len(embeds) > MAX_EMBEDS:
        raise errors.too_long(f"{prefix}embeds", MAX_EMBEDS)
    total = 0
    for number, embed in enumerate(embeds):
        for name, limit in (("title", 256), ("description", 4096)):
            text = str(embed.get(name) or "")
            total += len(text)
            if len(text) > limit:
                raise errors.too_long(f"{prefix}embeds.{number}.{name}", limit)
    if total > MAX_EMBED_TEXT:
        text = f"Embed size exceeds maximum size of {MAX_EMBED_TEXT}"
        raise errors.invalid_form(f"{prefix}embeds", "MAX_EMBED_SIZE_EXCEEDED", text)


def _check_rows(rows: list[JsonObject], prefix: str) -> None:
    if len(rows) > MAX_ROWS:
        raise errors.bad_length(f"{prefix}components", 1, MAX_ROWS)
    seen: set[str] = set()
    for number, row in enumerate(rows):
        if row.get("type") != 1:
            continue
        parts = objects(row.get("components"))
        if not 1 <= len(parts) <= 5:
            raise errors.bad_length(f"{prefix}components.{number}.components", 1, 5)
        for place, part in enumerate(parts):
            _check_component(part, f"{prefix}components.{number}.components.{place}", seen)


def _check_component(part: JsonObject, path: str, seen: set[str]) -> None:
    custom_id = part.get("custom_id")
    if custom_id is None:
        if part.get("type") != _BUTTON or part.get("style") != _LINK_STYLE:
            raise errors.required(f"{path}.custom_id")
    elif not 1 <= len(str(custom_id)) <= 100:
        raise errors.bad_length(f"{path}.custom_id", 1, 100)
    elif str(custom_id) in seen:
        text = "Component custom id cannot be duplicated"
        raise errors.invalid_form(f"{path}.custom_id", "COMPONENT_CUSTOM_ID_DUPLICATED", text)
    else:
        seen.add(str(custom_id))
    if len(str(part.get("label") or "")) > 80:
        raise errors.too_long(f"{path}.label", 80)
    if part.get("type") == _TEXT_SELECT:
        options = objects(part.get("options"))
        if not 1 <= len(options) <= 25:
            raise errors.bad_length(f"{path}.options", 1, 25)
        for number, option in enumerate(options):
            for name in ("label", "value", "description"):
                if len(str(option.get(name) or "")) > 100:
                    raise errors.too_long(f"{path}.options.{number}.{name}", 100)


def allowed_mentions(value: object) -> AllowedMentions | None:
    """Read `allowed_mentions`; None where the client left it out, and everybody named is pinged."""
    if not isinstance(value, dict):
        return None
    fields = cast("dict[str, Any]", value)
    return AllowedMentions(
        parse=frozenset(fields.get("parse") or ()),
        users=frozenset(str(item) for item in fields.get("users") or ()),
        roles=frozenset(str(item) for item in fields.get("roles") or ()),
        replied_user=bool(fields.get("replied_user", False)),
    )


def poll(value: object) -> Poll | None:
    """Read a Poll Create Request."""
    if not isinstance(value, dict):
        return None
    fields = cast("dict[str, Any]", value)
    question = str(_object(fields.get("question")).get("text") or "")
    media = [_object(item.get("poll_media")) for item in objects(fields.get("answers"))]
    if not 1 <= len(media) <= 10:
        raise errors.bad_length("poll.answers", 1, 10)
    if not 1 <= len(question) <= 300:
        raise errors.bad_length("poll.question.text", 1, 300)
    return Poll(
        question=question,
        answers=[str(item.get("text") or "") for item in media],
        multiselect=bool(fields.get("allow_multiselect")),
        hours=float(fields.get("duration") or 24),
        emoji=[_object(item.get("emoji")).get("name") for item in media],
    )


def _object(value: object) -> JsonObject:
    return cast("JsonObject", value) if isinstance(value, dict) else {}
