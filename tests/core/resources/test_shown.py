"""What a platform tells of a file, into what is shown and recorded."""

import pytest

from core.ids import AssetId, ChannelId, MessageId
from core.resources.shown import Shown, Told, show
from core.sidecars import FileRef, SourceInfo

ASSET = AssetId("0" * 32)
REF = FileRef(platform="here", channel_id=ChannelId("1"), message_id=MessageId("2"), file_id="3")


def shown(usual_type: str = "application/octet-stream", **told: object) -> Shown:
    return show(Told(asset=ASSET, ref=REF, usual_type=usual_type, **told))  # pyright: ignore[reportArgumentType] - each test names its members


@pytest.mark.parametrize(
    ("declared", "tag", "media_type"),
    [
        ("image/png", "img", "image/*"),
        ("IMAGE/PNG", "img", "image/*"),
        ("Audio/ogg; codecs=opus", "audio", "Audio/ogg; codecs=opus"),
        ("video/mp4", "video", "video/mp4"),
        ("text/plain; charset=utf-8", "file", "text/plain; charset=utf-8"),
        ("no type\n", "file", "application/octet-stream"),
        ("", "file", "application/octet-stream"),
    ],
)
def test_the_declared_type_tells_how_a_file_is_shown(declared: str, tag: str, media_type: str) -> None:
    file = shown(media_type=declared)
    assert (file.element.tag, file.media.item.media_type) == (tag, media_type)


def test_a_type_that_is_only_usual_is_not_recorded_as_declared() -> None:
    file = shown("image/webp", filename="a.webp", byte_length=7)
    assert file.element.tag == "img"
    assert file.media.declared == SourceInfo(byte_length=7, filename="a.webp")


@pytest.mark.parametrize("size", [True, -1, "5", 1.5, None])
def test_what_is_no_size_is_none(size: object) -> None:
    file = shown("image/png", byte_length=size, width=size, height=size)
    item = file.media.item
    assert (item.byte_length, item.width, item.height) == (None, None, None)
    assert file.element.attributes == {"src": item.url}


def test_only_what_can_be_seen_shows_its_width_and_height() -> None:
    assert shown("video/mp4", width=4, height=3).element.text("width") == "4"
    assert shown("audio/ogg", width=4, height=3).element.text("width") == ""
    assert shown("image/png", width=4, height=0).element.text("width") == ""


def test_a_title_stands_for_the_file_name_and_a_spoiler_around_both() -> None:
    assert shown(filename="a.bin").element.text("title") == "a.bin"
    hidden = shown(filename="a.bin", title="song", hidden=True)
    (inner,) = hidden.element.children
    assert (hidden.element.tag, getattr(inner, "tag", "")) == ("spl", "file")
    assert hidden.media.item.filename == "a.bin"
