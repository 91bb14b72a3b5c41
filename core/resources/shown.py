"""A file of a message, as its text shows it and as it is recorded: what is the same on every platform. Pure."""

import re
from dataclasses import dataclass
from typing import Final, Literal

from core.content import Element
from core.entries import AttachmentItem
from core.ids import AssetId
from core.resources.names import safe_filename
from core.sessions.facts import Media
from core.sidecars import FileRef, SourceInfo

_MEDIA_TYPE: Final = re.compile(r"[\w.+-]{1,63}/[\w.+-]{1,63}(?:; ?[\w.+-]{1,63}=[\w.+\"-]{1,63}){0,3}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a platform tells of a file; nothing of it need be true, or even be of its kind.

    ``usual_type`` is the media type of such a file where ``media_type`` is none. Sizes in bytes and pixels.
    ``title`` is shown for the file name, ``hidden`` is a spoiler.
    """

    asset: AssetId
    ref: FileRef
    usual_type: str
    media_type: str | None = None
    filename: str | None = None
    byte_length: object = None
    width: object = None
    height: object = None
    title: str | None = None
    alt: str | None = None
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class Shown:
    """A file as it stands in a message, and as it is recorded."""

    element: Element
    media: Media


def show(file: Told) -> Shown:
    """Its element, and its facts; ``declared`` in them is only what the platform said."""
    declared = SourceInfo(
        media_type=_media_type(file.media_type),
        byte_length=_size(file.byte_length),
        filename=safe_filename(file.filename) if file.filename else None,
    )
    media_type = declared.media_type or file.usual_type
    tag = _tag_of(media_type)
    item = AttachmentItem(
        url=f"asset://{file.asset}",
        media_type="image/*" if tag == "img" else media_type,
        filename=declared.filename,
        byte_length=declared.byte_length,
        width=_size(file.width) or None,
        height=_size(file.height) or None,
    )
    told: dict[str, str | None] = {"src": item.url, "title": file.title or item.filename, "alt": file.alt}
    if tag in {"img", "video"} and item.width and item.height:
        told |= {"width": str(item.width), "height": str(item.height)}
    element = Element(tag, {name: value for name, value in told.items() if value})
    media = Media(asset=file.asset, item=item, ref=file.ref, declared=declared)
    return Shown(Element("spl", {}, (element,)) if file.hidden else element, media)


def _media_type(declared: str | None) -> str | None:
    return declared if declared and _MEDIA_TYPE.fullmatch(declared) else None


def _size(declared: object) -> int | None:
    if isinstance(declared, bool) or not isinstance(declared, int):
        return None
    return declared if declared >= 0 else None


def _tag_of(media_type: str) -> Literal["img", "audio", "video", "file"]:
    match media_type.partition("/")[0].lower():
        case "image":
            return "img"
        case "audio":
            return "audio"
        case "video":
            return "video"
        case _:
            return "file"
