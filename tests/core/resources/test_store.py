"""Bytes and sidecars: what they are found to be, what URLs may name, and what a retraction leaves."""

import json
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import ResourceError
from core.ids import AssetId
from core.resources.store import Resources, sniff
from core.sidecars import SourceInfo
from tests.builders import SESSION, a_picture, said
from tests.conftest import House

PNG = bytes.fromhex("89504e470d0a1a0a0000000d49484452000000030000000208020000001d7b2d8d") + bytes(20)


async def a_registered_asset(house: House) -> tuple[Resources, AssetId]:
    """A picture that the log names and nobody has fetched."""
    picture = a_picture(1)
    fact = said(1, f'<img src="{picture.item.url}"/>')
    await house.sessions.of(SESSION).append([type(fact)(fact.message, (picture,))])
    return Resources(house.folder / "runtimes"), picture.asset


def keep(resources: Resources, asset: AssetId, content: bytes) -> None:
    with resources.receive(SESSION, asset) as incoming:
        incoming.write(content)
        resources.keep(SESSION, asset, incoming)


async def test_an_asset_is_registered_by_the_append_that_names_it(house: House) -> None:
    resources, asset = await a_registered_asset(house)
    sidecar = resources.sidecar(SESSION, f"asset://{asset}")
    assert (sidecar.id, sidecar.kind, sidecar.namespace, sidecar.filename) == (asset, "asset", "", "cat.png")
    assert sidecar.ref is not None
    assert sidecar.ref.attachment_id == "f1"
    with pytest.raises(ResourceError) as unavailable:
        resources.open(SESSION, f"asset://{asset}")
    assert unavailable.value.code == "resource_unavailable"


async def test_what_the_bytes_are_goes_into_the_sidecar(house: House) -> None:
    resources, asset = await a_registered_asset(house)
    keep(resources, asset, PNG)
    path, sidecar = resources.open(SESSION, f"ASSET://{asset}")
    assert path.read_bytes() == PNG
    assert (sidecar.media_type, sidecar.width, sidecar.height, sidecar.byte_length) == ("image/png", 3, 2, len(PNG))
    assert sidecar.content_hash is not None
    assert len(sidecar.content_hash) == 64
    assert sidecar.fetched_at is not None
    folder = path.parent
    assert {entry.name for entry in folder.iterdir()} == {asset, f"{asset}.json"}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    raw = json.loads((folder / f"{asset}.json").read_bytes())
    assert list(raw)[:5] == ["id", "kind", "namespace", "name", "createdAt"]


async def test_a_download_that_breaks_off_leaves_nothing(house: House) -> None:
    resources, asset = await a_registered_asset(house)
    with pytest.raises(ConnectionError), resources.receive(SESSION, asset) as incoming:
        incoming.write(b"half")
        raise ConnectionError
    assert [entry.name for entry in (house.sessions.folder(SESSION) / "resources" / "assets").iterdir()] == [
        f"{asset}.json"
    ]


async def test_a_retraction_takes_the_bytes_and_leaves_the_sidecar(house: House) -> None:
    resources, asset = await a_registered_asset(house)
    keep(resources, asset, PNG)
    resources.remove(SESSION, asset)
    resources.remove(SESSION, asset)
    assert resources.sidecar(SESSION, f"asset://{asset}").removed_at is not None
    with pytest.raises(ResourceError) as gone:
        resources.open(SESSION, f"asset://{asset}")
    assert gone.value.code == "resource_not_found"
    assert not (house.sessions.folder(SESSION) / "resources" / "assets" / asset).exists()


async def test_an_artifact_is_kept_under_the_hash_of_its_bytes(house: House) -> None:
    resources, _ = await a_registered_asset(house)
    url = resources.put_artifact(SESSION, "screenshot", PNG, filename="page.png")
    assert resources.put_artifact(SESSION, "screenshot", PNG) == url
    assert url.startswith("artifact://screenshot/")
    for folder in (house.sessions.folder(SESSION) / "resources").rglob("*"):
        assert stat.S_IMODE(folder.stat().st_mode) == (0o700 if folder.is_dir() else 0o600)
    upload = await resources.upload(SESSION, url)
    assert (upload.name, upload.media_type, upload.content) == ("page.png", "image/png", PNG)


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("asset://../../../../etc/passwd", "invalid_resource_uri"),
        ("asset://%2e%2e", "invalid_resource_uri"),
        ("asset://a%2fb", "invalid_resource_uri"),
        ("asset://a%5cb", "invalid_resource_uri"),
        ("asset://a%00b", "invalid_resource_uri"),
        ("asset://.hidden", "invalid_resource_uri"),
        ("asset://", "invalid_resource_uri"),
        ("asset://x.json", "invalid_resource_uri"),
        ("artifact://only-one", "invalid_resource_uri"),
        ("artifact://a/b/c", "invalid_resource_uri"),
        ("artifact://../b", "invalid_resource_uri"),
        ("artifact://a/..", "invalid_resource_uri"),
        ("https://example.org/a", "invalid_resource_uri"),
        ("file:///etc/passwd", "invalid_resource_uri"),
        ("asset://abc?view=full", "unsupported_view"),
        ("asset://abc", "resource_not_found"),
        ("artifact://a/b?view=meta", "resource_not_found"),
    ],
)
def test_a_url_names_a_resource_of_the_session_or_nothing(tmp_path: Path, url: str, code: str) -> None:
    with pytest.raises(ResourceError) as refused:
        Resources(tmp_path).sidecar(SESSION, url)
    assert refused.value.code == code


@pytest.mark.parametrize("namespace", ["", "..", "a/b", "a b", "ä"])
def test_a_namespace_is_never_a_path(tmp_path: Path, namespace: str) -> None:
    with pytest.raises(ResourceError):
        Resources(tmp_path).put_artifact(SESSION, namespace, b"x")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("head", "declared", "found"),
    [
        (PNG, "text/plain", "image/png"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "image/svg+xml", "application/octet-stream"),
        (b"hello", "image/png", "application/octet-stream"),
        (b"hello", "text/plain", "text/plain"),
        (b"", None, "application/octet-stream"),
    ],
)
def test_the_type_is_told_by_the_bytes(head: bytes, declared: str | None, found: str) -> None:
    assert sniff(head, SourceInfo(media_type=declared)) == found


@given(st.binary(max_size=300))
def test_no_bytes_upset_the_sniffing(head: bytes) -> None:
    for magic in (b"", PNG[:8], b"GIF89a", b"\xff\xd8\xff", b"RIFF\x00\x00\x00\x00WEBP", b"II*\x00", b"BM"):
        assert "/" in sniff(magic + head, None)


@given(
    st.sampled_from([PNG[:8], b"GIF89a", b"\xff\xd8\xff\xe0", b"RIFF\x10\x00\x00\x00WEBPVP8 ", b"II*\x00", b"BM"]),
    st.binary(),
)
def test_no_picture_upsets_the_measuring(tmp_path_factory: pytest.TempPathFactory, magic: bytes, rest: bytes) -> None:
    resources = Resources(tmp_path_factory.mktemp("runtimes"))
    url = resources.put_artifact(SESSION, "t", magic + rest)
    sidecar = resources.sidecar(SESSION, url)
    assert sidecar.width is None or sidecar.width > 0
