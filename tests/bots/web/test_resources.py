"""Files of a session over HTTP."""

import json

import pytest

from bots.web.resources import content_disposition
from core.ids import AssetId, SessionId, discord_session
from core.sessions.facts import Said
from tests.bots.web.api import Api, fill, problem_of
from tests.builders import SESSION, a_message, a_picture
from tests.conftest import House

RESOURCES = f"/v1/session/{SESSION}/resources"
PNG = bytes.fromhex("89504e470d0a1a0a0000000d49484452000000030000000208020000001216f14d") + b"\0" * 300_000


async def a_stored_picture(api: Api, *, fetched: bool = True) -> AssetId:
    """A message with a picture; its bytes are there when ``fetched``."""
    media = a_picture(1)
    await api.house.sessions.of(SESSION).append([Said(a_message(1), media=(media,))])
    if fetched:
        with api.resources.receive(SESSION, media.asset) as incoming:
            incoming.write(PNG)
            api.resources.keep(SESSION, media.asset, incoming)
    return media.asset


async def test_an_asset_is_a_download_of_its_real_type(house: House) -> None:
    api = Api(house)
    answer = await api.get(f"{RESOURCES}/assets/{await a_stored_picture(api)}")
    assert (answer.status_code, answer.content) == (200, PNG)
    assert answer.headers["content-type"] == "image/png"
    assert answer.headers["content-length"] == str(len(PNG))
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-disposition"] == 'attachment; filename="cat.png"'
    assert answer.headers["content-security-policy"].startswith("sandbox")


async def test_the_sidecar_is_the_view_meta(house: House) -> None:
    api = Api(house)
    asset = await a_stored_picture(api)
    answer = await api.get(f"{RESOURCES}/assets/{asset}?view=meta")
    path = house.folder / "runtimes" / SESSION / "resources" / "assets" / f"{asset}.json"
    assert answer.headers["content-type"] == "application/json"
    assert answer.json() == json.loads(path.read_bytes())
    assert problem_of(await api.get(f"{RESOURCES}/assets/{asset}?view=all")) == (400, "unsupported_view")
    assert problem_of(await api.get(f"{RESOURCES}/assets/{asset}?view=")) == (400, "unsupported_view")


async def test_an_asset_that_is_not_fetched_yet_is_425(house: House) -> None:
    api = Api(house)
    asset = await a_stored_picture(api, fetched=False)
    answer = await api.get(f"{RESOURCES}/assets/{asset}")
    assert problem_of(answer) == (425, "resource_unavailable")
    assert int(answer.headers["retry-after"]) > 0
    assert (await api.get(f"{RESOURCES}/assets/{asset}?view=meta")).status_code == 200


async def test_an_asset_that_could_not_be_fetched_is_404_and_says_why(house: House) -> None:
    api = Api(house)
    asset = await a_stored_picture(api, fetched=False)
    api.resources.give_up(SESSION, asset, "too_large", "it is larger than ISHIKI_ASSET_MAX_BYTES")
    answer = await api.get(f"{RESOURCES}/assets/{asset}")
    assert problem_of(answer) == (404, "resource_not_found")
    assert "ISHIKI_ASSET_MAX_BYTES" in answer.text


async def test_a_retracted_asset_is_410_and_its_sidecar_says_when(house: House) -> None:
    api = Api(house)
    asset = await a_stored_picture(api)
    api.resources.remove(SESSION, asset)
    assert problem_of(await api.get(f"{RESOURCES}/assets/{asset}")) == (410, "resource_removed")
    assert (await api.get(f"{RESOURCES}/assets/{asset}?view=meta")).json()["removedAt"] > 0


async def test_resources_are_found_only_in_their_own_session(house: House) -> None:
    api = Api(house)
    asset = await a_stored_picture(api)
    other: SessionId = discord_session(5)
    (house.folder / "runtimes" / other).mkdir()
    assert problem_of(await api.get(f"/v1/session/{other}/resources/assets/{asset}")) == (404, "resource_not_found")


@pytest.mark.parametrize(
    "path",
    [
        "assets/..%2f..%2fevents.jsonl",
        "assets/%252e%252e%252fevents.jsonl",
        "assets/%2e%2e",
        "assets/.hidden",
        "assets/a%00b",
        "assets/a%5Cb",
        "assets/nothing",
        "assets/a%3Fview=meta",
        "artifacts/../assets",
        "artifacts/%2e%2e/events.jsonl",
        "artifacts/tool/%2e%2e%2f%2e%2e",
        "artifacts/tool/nothing.blob",
        "artifacts/tool",
    ],
)
async def test_no_path_leads_out_of_the_resources(house: House, path: str) -> None:
    await fill(house)
    answer = await Api(house).get(f"{RESOURCES}/{path}")
    assert answer.status_code in {404, 405}
    problem_of(answer)


async def test_a_sidecar_is_not_given_as_bytes(house: House) -> None:
    api = Api(house)
    asset = await a_stored_picture(api)
    assert problem_of(await api.get(f"{RESOURCES}/assets/{asset}.json"))[0] == 404


async def test_an_artifact_is_kept_under_its_hash_and_given_again(house: House) -> None:
    await fill(house)
    api = Api(house)
    page = b"<html><script>alert(1)</script></html>"
    async with api.client() as client:
        kept = await client.post(f"{RESOURCES}/artifacts/grep_2", content=page)
        again = await client.post(f"{RESOURCES}/artifacts/grep_2", content=page, headers={"Content-Type": "text/html"})
        assert (kept.status_code, kept.json()) == (201, again.json())
        scheme, _, path = kept.json()["url"].partition("://")
        answer = await client.get(f"{RESOURCES}/artifacts/{path}")
    assert scheme == "artifact"
    assert (answer.status_code, answer.content) == (200, page)
    assert answer.headers["content-disposition"].startswith("attachment")
    assert answer.headers["content-security-policy"].startswith("sandbox")


async def test_an_empty_artifact_is_one_too(house: House) -> None:
    await fill(house)
    async with Api(house).client() as client:
        kept = await client.post(f"{RESOURCES}/artifacts/tool", content=b"")
        answer = await client.get(f"{RESOURCES}/artifacts/{kept.json()['url'].removeprefix('artifact://')}")
    assert (answer.status_code, answer.content) == (200, b"")


@pytest.mark.parametrize("namespace", ["a.b", "%2e%2e", "n" * 65, "a%20b"])
async def test_a_bad_namespace_is_400(house: House, namespace: str) -> None:
    await fill(house)
    answer = await Api(house).post(f"{RESOURCES}/artifacts/{namespace}", {})
    assert problem_of(answer) == (400, "invalid_resource_uri")


@pytest.mark.parametrize(
    ("name", "header"),
    [
        ("cat.png", 'attachment; filename="cat.png"'),
        ("a b.txt", 'attachment; filename="a b.txt"'),
        ('x".png', "attachment; filename=\"x_.png\"; filename*=UTF-8''x%22.png"),
        ("猫.png", "attachment; filename=\"_.png\"; filename*=UTF-8''%E7%8C%AB.png"),
        ("a\r\nb", "attachment; filename=\"a__b\"; filename*=UTF-8''a%0D%0Ab"),
    ],
)
def test_a_file_name_cannot_leave_its_header(name: str, header: str) -> None:
    assert content_disposition(name) == header
