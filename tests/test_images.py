"""Images: what is found, refused, kept as it is or made anew, and how it goes over the wire."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import multiprocessing
import os
import resource
import struct
import subprocess
import sys
import warnings
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image, ImageCms, ImageFile

import vpref.images.preparing
from vpref.errors import BadImage, ConfigError, RunStopped
from vpref.images import Gallery, ImageRecord, list_images, prepare
from vpref.images.containers import is_bare
from vpref.images.index import Entry, Index
from vpref.images.normalising import normalise
from vpref.settings import DataSettings, ImageSettings, Source

PHOTOS = Path(vpref.images.preparing.__file__).parent / "photos"
COCO = Path(__file__).parents[2] / "shared" / "images"
DATA = DataSettings()
AS_IS = ImageSettings()


def picture(size: tuple[int, int] = (96, 64), seed: int = 0) -> Image.Image:
    """A smooth picture in which every corner differs, so that a turn shows."""
    width, height = size
    red = Image.linear_gradient("L").resize(size)
    green = Image.linear_gradient("L").rotate(90).resize(size)
    return Image.merge("RGB", (red, green, Image.new("L", (width, height), seed * 10)))


def save(image: Image.Image, format: str, **options: Any) -> bytes:
    out = io.BytesIO()
    image.save(out, format, **options)
    return out.getvalue()


def shown(data: bytes, settings: DataSettings = DATA) -> Image.Image:
    """What a model gets to see of a file."""
    with Image.open(io.BytesIO(normalise(data, settings).data)) as image:
        image.load()
        return image


def pixel(image: Image.Image, at: tuple[int, int]) -> tuple[int, ...]:
    value = image.getpixel(at)
    assert isinstance(value, tuple)
    return tuple(int(part) for part in value)


def close(left: tuple[int, ...], right: tuple[int, ...], by: int = 3) -> bool:
    return len(left) == len(right) and all(abs(a - b) <= by for a, b in zip(left, right, strict=True))


def refusal(data: bytes, settings: DataSettings = DATA) -> BadImage:
    with pytest.raises(BadImage) as caught:
        normalise(data, settings)
    return caught.value


def folder(root: Path, *names: str) -> Path:
    for seed, name in enumerate(names):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(save(picture(seed=seed), "PNG"))
    return root


def ids(settings: DataSettings) -> list[str]:
    return [image.id for image in list_images(settings)]


# --- the packaged photos ---------------------------------------------------------------------------------


def test_packaged_photos_are_kept_as_they_are_and_attributed() -> None:
    images = list_images(DATA)
    assert [image.id for image in images] == sorted(path.name for path in PHOTOS.glob("*.jpg"))
    assert len(images) == 6
    for image in images:
        assert image.attribution
        assert image.licence in ("CC0 1.0", "Public domain", "CC BY 2.0")
        assert image.licence_url
        assert image.url
        data = image.path.read_bytes()
        assert normalise(data, DATA).data == data, "a packaged photo carries metadata"


def test_attribution_file_says_what_the_data_says() -> None:
    credits = json.loads((PHOTOS / "attribution.json").read_text("utf-8"))
    rows = [
        f"| `{name}` | {c['title']} | {c['author']} | [{c['licence']}]({c['licence_url']}) "
        f"| <{c['url']}> by way of {c['via']} | {c['changes']} |"
        for name, c in credits.items()
    ]
    text = (PHOTOS / "ATTRIBUTION.md").read_text("utf-8")
    assert [line for line in text.splitlines() if line.startswith("| `")] == rows


def test_importing_the_package_loads_no_pillow() -> None:
    code = "import sys, vpref.images; sys.exit(any(name.split('.')[0] == 'PIL' for name in sys.modules))"
    root = Path(vpref.images.preparing.__file__).parents[2]
    assert subprocess.run([sys.executable, "-c", code], cwd=root, check=False).returncode == 0


# --- finding ---------------------------------------------------------------------------------------------


def test_folder_is_searched_in_path_order_without_hidden_files(tmp_path: Path) -> None:
    folder(tmp_path, "b/zürich 🐈.PNG", "b/a.jpeg", "a.TIFF", "ab/x.gif", ".hidden.png", ".git/y.png", "b/.z/y.png")
    (tmp_path / "notes.txt").write_text("no image")
    (tmp_path / "png").write_text("no image")
    assert ids(DataSettings(root=str(tmp_path))) == ["a.TIFF", "ab/x.gif", "b/a.jpeg", "b/zürich 🐈.PNG"]


def test_links_are_followed_and_loops_end(tmp_path: Path) -> None:
    root = folder(tmp_path / "root", "deep/one.png")
    folder(tmp_path / "elsewhere", "two.png")
    (root / "a_link").symlink_to(root / "deep")
    (root / "deep" / "loop").symlink_to(root)
    (root / "far").symlink_to(tmp_path / "elsewhere")
    (root / "itself.png").symlink_to(root / "itself.png")
    (root / "linked.png").symlink_to(tmp_path / "elsewhere" / "two.png")
    assert ids(DataSettings(root=str(root))) == ["deep/one.png", "far/two.png", "itself.png", "linked.png"]
    statuses = {r.source: r.kind or r.status for r in prepare(DataSettings(root=str(root)), Gallery(tmp_path / "g"))}
    assert statuses == {
        "deep/one.png": "used",
        "far/two.png": "duplicate",
        "itself.png": "unreadable",
        "linked.png": "duplicate",
    }


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has file names that are no Unicode")
def test_name_that_is_no_unicode_still_gives_a_record(tmp_path: Path) -> None:
    folder(tmp_path, "a.png")
    os.rename(tmp_path / "a.png", os.fsencode(tmp_path) + b"/\xff.png")
    (record,) = prepare(DataSettings(root=str(tmp_path)), Gallery(tmp_path / "gallery"))
    assert ImageRecord.model_validate_json(record.model_dump_json()).source == "\\xff.png"


def test_selection_keeps_path_order(tmp_path: Path) -> None:
    names = [f"{number:02}.png" for number in range(20)]
    folder(tmp_path, *names)
    root = str(tmp_path)
    assert ids(DataSettings(root=root, first=3)) == names[:3]
    assert ids(DataSettings(root=root, first=99)) == names
    assert ids(DataSettings(root=root, ids=["07.png", "01.png"])) == ["01.png", "07.png"]
    sample = ids(DataSettings(root=root, sample=5, seed=1))
    assert sample == sorted(sample)
    assert len(sample) == 5
    assert sample != ids(DataSettings(root=root, sample=5, seed=2))
    (tmp_path / next(name for name in names if name not in sample)).unlink()
    assert ids(DataSettings(root=root, sample=5, seed=1)) == sample, "a sample must not depend on the others"


def test_sample_is_the_same_on_every_machine() -> None:
    assert ids(DataSettings(sample=3, seed=7)) == ["astronaut.jpg", "flower.jpg", "rocket.jpg"]


def test_config_mistakes_are_named(tmp_path: Path) -> None:
    file = tmp_path / "file.png"
    file.write_bytes(b"")
    empty = tmp_path / "empty"
    empty.mkdir()
    full = folder(tmp_path / "full", "a.png")
    for wanted, data in {
        "does not exist": DataSettings(root=str(tmp_path / "absent")),
        "is not a folder": DataSettings(root=str(file)),
        "No image file is in": DataSettings(root=str(empty)),
        "names b, c, d and 2 more": DataSettings(root=str(full), ids=["a.png", "f", "e", "d", "c", "b"]),
        "No image is chosen": DataSettings(root=str(full), ids=[]),
        "data.root is null": DataSettings(source=Source.visual_genome),
        "lacks VG_100K, VG_100K_2, image_data.json": DataSettings(source=Source.visual_genome, root=str(full)),
    }.items():
        with pytest.raises(ConfigError, match=wanted):
            list_images(data)


# --- Visual Genome ---------------------------------------------------------------------------------------


def visual_genome(root: Path, records: Any) -> DataSettings:
    folder(root, "VG_100K/10.jpg", "VG_100K_2/9.jpg", "VG_100K_2/100.jpg", "VG_100K/5000.jpg")
    (root / "image_data.json").write_text(records if isinstance(records, str) else json.dumps(records))
    return DataSettings(source=Source.visual_genome, root=str(root))


def vg_record(number: int) -> dict[str, Any]:
    return {"image_id": number, "url": f"https://vg/{number}.jpg", "width": 96, "height": 64, "coco_id": None}


def test_visual_genome_is_listed_by_number_and_attributed(tmp_path: Path) -> None:
    data = visual_genome(tmp_path, [vg_record(number) for number in (100, 9, 10)])
    images = list_images(data)
    assert [(image.id, image.path.parent.name) for image in images] == [
        ("9", "VG_100K_2"),
        ("10", "VG_100K"),
        ("100", "VG_100K_2"),
    ]
    (record, *_) = prepare(data, Gallery(tmp_path / "gallery"))
    assert record.attribution == "Visual Genome 1.2, Krishna et al. 2017, CC BY 4.0"
    assert (record.licence, record.url) == ("CC BY 4.0", "https://vg/9.jpg")
    assert ids(replace(data, ids=["10"])) == ["10"]


def test_images_that_visual_genome_lists_and_the_disk_lacks_are_counted(tmp_path: Path) -> None:
    data = visual_genome(tmp_path, [vg_record(number) for number in (7, 9, 10, 50, 100, 200)])
    records = prepare(data, Gallery(tmp_path / "gallery"))
    assert [record.source for record in records if record.kind == "missing"] == ["7", "50", "200"]
    assert ids(replace(data, first=2)) == ["7", "9", "10"], "two present ones, and the absent one before them"
    sample = list_images(replace(data, sample=2))
    assert sum(image.present for image in sample) == 2


@pytest.mark.parametrize(
    ("content", "message"),
    [("[{", "not readable JSON"), ("{}x", "not readable JSON"), ('[{"id": 1}]', "not Visual Genome's list")],
)
def test_damaged_image_data_is_named(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        list_images(visual_genome(tmp_path, content))


def test_half_a_visual_genome_is_refused(tmp_path: Path) -> None:
    data = visual_genome(tmp_path, [])
    with pytest.raises(ConfigError, match="No image is chosen"):
        list_images(data)
    (tmp_path / "image_data.json").unlink()
    with pytest.raises(ConfigError, match=r"lacks image_data\.json; unpack"):
        list_images(data)


# --- normalising: what keeps its bytes -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("format", "options"),
    [("JPEG", {}), ("JPEG", {"progressive": True}), ("JPEG", {"restart_marker_rows": 1}), ("PNG", {})],
)
def test_clean_file_keeps_its_bytes(format: str, options: dict[str, Any]) -> None:
    data = save(picture(), format, **options)
    image = normalise(data, DATA)
    assert image.data == data
    assert image.digest == hashlib.sha256(data).hexdigest()
    assert (image.width, image.height) == (96, 64)
    raw = b"96x64" + picture().tobytes()
    assert format == "JPEG" or image.pixels == hashlib.sha256(raw).hexdigest()
    assert image.suffix == {"JPEG": ".jpg", "PNG": ".png"}[format]


def exif(**tags: int) -> bytes:
    block = Image.Exif()
    block[0x0112] = tags.get("orientation", 1)
    block.get_ifd(0x8825)[2] = (47.0, 22.0, 33.0)
    block[0x010F] = "SECRETCAMERA"
    return block.tobytes()


JPEG_LIKE = save(picture(), "JPEG")


@pytest.mark.parametrize(
    "data",
    [
        save(picture(), "JPEG", exif=exif()),
        save(picture(), "JPEG", comment=b"SECRET"),
        save(picture(), "JPEG", xmp=b"<x:xmpmeta>SECRET</x:xmpmeta>"),
        JPEG_LIKE + b"SECRET trailer",
        JPEG_LIKE[:2] + b"\xff\xed\x00\x08SECRET" + JPEG_LIKE[2:],
        save(picture(), "PNG", exif=exif()),
        save(picture(), "PNG") + b"SECRET",
        save(picture(), "WEBP", exif=exif(), lossless=True),
        save(picture(), "TIFF", description="SECRET"),
    ],
    ids=["exif", "comment", "xmp", "trailer", "iptc", "png exif", "png trailer", "webp", "tiff"],
)
def test_metadata_is_never_sent_on(data: bytes) -> None:
    image = normalise(data, DATA)
    assert image.data != data
    assert is_bare(image.data)
    assert b"SECRET" not in image.data
    with Image.open(io.BytesIO(image.data)) as again:
        assert not again.getexif()
        assert not set(again.info) & {"exif", "icc_profile", "comment", "xmp", "photoshop"}
        assert all(close(pixel(again, at), pixel(picture(), at), 6) for at in [(3, 3), (90, 3), (3, 60), (90, 60)])


def test_png_text_makes_a_new_file() -> None:
    from PIL.PngImagePlugin import PngInfo

    info = PngInfo()
    info.add_text("Author", "SECRET")
    assert b"SECRET" not in normalise(save(picture(), "PNG", pnginfo=info), DATA).data


def test_reencoding_keeps_full_colour_resolution() -> None:
    with Image.open(io.BytesIO(normalise(save(picture(), "BMP"), DATA).data)) as image:
        assert image.format == "JPEG"
        assert {part[1:3] for part in image.layer} == {(1, 1)}  # type: ignore[attr-defined]


# --- normalising: turning, reducing ----------------------------------------------------------------------


@pytest.mark.parametrize("format", ["JPEG", "PNG", "WEBP", "TIFF"])
def test_orientation_is_applied(format: Literal["JPEG", "PNG", "WEBP", "TIFF"]) -> None:
    original = picture()
    image = shown(save(original, format, exif=exif(orientation=6)))
    assert image.size == (64, 96)
    # 6: the camera was turned, so that the top of the stored picture is the right of what was seen.
    assert close(pixel(image, (60, 4)), pixel(original, (4, 3)), 8)
    assert close(pixel(image, (4, 92)), pixel(original, (92, 60)), 8)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_every_orientation_agrees_with_pillow(orientation: int) -> None:
    from PIL import ImageOps

    data = save(picture(), "PNG", exif=exif(orientation=orientation))
    with Image.open(io.BytesIO(data)) as image:
        expected = ImageOps.exif_transpose(image).convert("RGB")
    raw = f"{expected.width}x{expected.height}".encode() + expected.tobytes()
    assert normalise(data, DATA).pixels == hashlib.sha256(raw).hexdigest()


def test_damaged_exif_is_as_good_as_none() -> None:
    data = save(picture(), "JPEG", exif=b"Exif\0\0MM\0*\0\0\xff\xff broken")
    assert shown(data).size == (96, 64)


@pytest.mark.parametrize("format", ["JPEG", "PNG"])
def test_large_image_is_reduced(format: str) -> None:
    image = shown(save(picture((1200, 800)), format), DataSettings(max_side=100))
    assert image.size == (100, 67)
    assert close(pixel(image, (97, 3)), pixel(picture((100, 67)), (97, 3)), 6)


def test_a_twenty_thousand_pixels_wide_image_works() -> None:
    assert shown(save(picture((20_000, 200)), "JPEG")).size == (2048, 20)
    assert normalise(save(picture((20_000, 200)), "PNG"), DATA).width == 2048


def test_turned_and_reduced_at_once() -> None:
    for format in ("JPEG", "TIFF"):
        data = save(picture((800, 400)), format, exif=exif(orientation=8))
        assert shown(data, DataSettings(max_side=100)).size == (50, 100)


# --- normalising: colours --------------------------------------------------------------------------------


def swapped_profile() -> bytes:
    """The sRGB profile with red and green exchanged, under another name."""
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    profile = profile.replace(b"rXYZ", b"????").replace(b"gXYZ", b"rXYZ").replace(b"????", b"gXYZ")
    return profile.replace("sRGB".encode("utf-16-be"), "xRGB".encode("utf-16-be"))


@pytest.mark.parametrize("mode", ["RGB", "RGBA"])
def test_other_profile_is_converted_to_srgb(mode: str) -> None:
    image = shown(save(Image.new(mode, (64, 64), (255, 0, 0)), "PNG", icc_profile=swapped_profile()))
    assert close(pixel(image, (9, 9)), (0, 255, 0))


def test_srgb_profile_changes_no_pixel_and_is_dropped() -> None:
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    image = normalise(save(picture(), "PNG", icc_profile=profile), DATA)
    assert image.pixels == normalise(save(picture(), "PNG"), DATA).pixels
    assert is_bare(image.data)


@pytest.mark.parametrize("profile", [b"rubbish", ImageCms.ImageCmsProfile(ImageCms.createProfile("LAB")).tobytes()])
def test_unfit_profile_is_ignored(profile: bytes) -> None:
    image = normalise(save(picture(), "PNG", icc_profile=profile), DATA)
    assert image.pixels == normalise(save(picture(), "PNG"), DATA).pixels


def test_cmyk_has_the_right_colours() -> None:
    for ink, colour in {(0, 255, 255, 0): (255, 0, 0), (255, 0, 255, 0): (0, 255, 0), (0, 0, 0, 0): (255,) * 3}.items():
        for format in ("JPEG", "TIFF"):
            image = shown(save(Image.new("CMYK", (64, 64), ink), format))
            assert close(pixel(image, (9, 9)), colour), (format, ink)


def test_grey_of_sixteen_bits_is_scaled() -> None:
    for format in ("PNG", "TIFF"):
        for value, wanted in {0: 0, 257: 1, 32_768: 128, 65_535: 255, 300: 1, 1000: 4}.items():
            image = shown(save(Image.new("I;16", (64, 64), value), format))
            assert close(pixel(image, (9, 9)), (wanted,) * 3, 1), (format, value)
    assert close(pixel(shown(save(Image.new("I", (64, 64), 65_535), "TIFF")), (9, 9)), (255,) * 3, 1)


def test_grey_beyond_sixteen_bits_is_refused() -> None:
    for value in (-5, 70_000):
        assert refusal(save(Image.new("I", (64, 64), value), "TIFF")).kind == "unsupported"


def test_floating_point_is_refused_by_name() -> None:
    bad = refusal(save(Image.new("F", (64, 64), 0.5), "TIFF"))
    assert bad.kind == "unsupported"
    assert "mode F" in str(bad)


def palette(transparency: int | bytes | None) -> bytes:
    image = Image.new("P", (64, 64), 1)
    image.putpalette([255, 0, 0, 0, 0, 255])
    image.paste(0, (0, 0, 32, 64))
    return save(image, "PNG", **({} if transparency is None else {"transparency": transparency}))


@pytest.mark.parametrize(
    ("data", "left", "right"),
    [
        (palette(None), (255, 0, 0), (0, 0, 255)),
        (palette(0), (255, 255, 255), (0, 0, 255)),
        (palette(b"\x80\xff"), (255, 127, 127), (0, 0, 255)),
        (save(Image.new("RGBA", (64, 64), (0, 0, 0, 0)), "PNG"), (255, 255, 255), (255, 255, 255)),
        (save(Image.new("RGBA", (64, 64), (0, 0, 0, 128)), "WEBP", lossless=True), (127,) * 3, (127,) * 3),
        (save(Image.new("RGB", (64, 64), (9, 9, 9)), "PNG", transparency=(9, 9, 9)), (255,) * 3, (255,) * 3),
        (save(Image.new("LA", (64, 64), (0, 51)), "PNG"), (204,) * 3, (204,) * 3),
        (save(Image.new("PA", (64, 64), (0, 51)), "TIFF"), (204,) * 3, (204,) * 3),
        (save(Image.new("L", (64, 64), 77), "JPEG"), (77,) * 3, (77,) * 3),
        (save(Image.new("1", (64, 64), 1), "PNG"), (255,) * 3, (255,) * 3),
        (save(Image.new("1", (64, 64), 0), "TIFF"), (0,) * 3, (0,) * 3),
        (save(Image.new("YCbCr", (64, 64), (77, 128, 128)), "TIFF"), (77,) * 3, (77,) * 3),
        (save(Image.new("P", (64, 64)), "GIF"), (0,) * 3, (0,) * 3),
    ],
    ids=["P", "P one clear", "P half", "RGBA", "WebP", "RGB clear", "LA", "PA", "L", "1", "1 TIFF", "YCbCr", "GIF"],
)
def test_every_mode_becomes_rgb_on_white(data: bytes, left: tuple[int, ...], right: tuple[int, ...]) -> None:
    image = shown(data)
    assert image.mode == "RGB"
    assert close(pixel(image, (8, 30)), left, 4)
    assert close(pixel(image, (56, 30)), right, 4)


# --- normalising: refusals -------------------------------------------------------------------------------


def test_empty_and_foreign_bytes_are_refused() -> None:
    assert refusal(b"").kind == "empty"
    for data in (
        b"\0",
        b"hello world " * 50,
        b"BMW is not a bitmap" * 9,
        b"%!PS-Adobe-3.0 EPSF",
        b"<svg/>",
        b"%PDF-1.7",
    ):
        assert refusal(data).kind == "not_an_image"


@pytest.mark.parametrize("format", ["JPEG", "PNG", "GIF", "WEBP", "TIFF", "BMP"])
@pytest.mark.parametrize("share", [0.15, 0.5, 0.9])
def test_cut_file_is_refused(format: str, share: float) -> None:
    data = save(Image.effect_noise((200, 200), 80).convert("RGB"), format)
    assert refusal(data[: int(len(data) * share)]).kind == "truncated"


def test_cut_file_is_refused_though_somebody_told_pillow_to_accept_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)
    data = save(Image.effect_noise((200, 200), 80).convert("RGB"), "JPEG", progressive=True)
    assert refusal(data[: len(data) // 2]).kind == "truncated"
    assert ImageFile.LOAD_TRUNCATED_IMAGES is True


def test_small_image_is_refused() -> None:
    bad = refusal(save(picture((500, 31)), "PNG"))
    assert bad.kind == "too_small"
    assert "500 x 31 px" in str(bad)
    assert shown(save(picture((500, 32)), "PNG")).size == (500, 32)


def png_header(width: int, height: int) -> bytes:
    def chunk(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(bytes(9999))) + chunk(b"IEND", b"")


def webp_header(width: int, height: int) -> bytes:
    body = (
        b"VP8X"
        + struct.pack("<I", 10)
        + bytes(4)
        + struct.pack("<I", width - 1)[:3]
        + struct.pack("<I", height - 1)[:3]
    )
    return b"RIFF" + struct.pack("<I", len(body) + 4) + b"WEBP" + body


@pytest.mark.parametrize("data", [png_header(15_000, 15_000), png_header(60_000, 60_000), webp_header(2**24, 2**24)])
def test_huge_image_is_refused_by_its_header(data: bytes) -> None:
    guard = Image.MAX_IMAGE_PIXELS
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert refusal(data).kind == "too_large"
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown * (1 if sys.platform == "darwin" else 1024) < 20e6
    assert guard == Image.MAX_IMAGE_PIXELS


def test_bound_on_size_is_ours_and_not_pillows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    assert normalise(save(picture(), "PNG"), DATA).width == 96
    assert Image.MAX_IMAGE_PIXELS == 100
    bad = refusal(save(picture(), "PNG"), DataSettings(max_megapixels=0.006))
    assert bad.kind == "too_large"
    assert "96 x 64" in str(bad)


@pytest.mark.parametrize(
    ("format", "word"), [("GIF", "frames"), ("WEBP", "frames"), ("PNG", "frames"), ("TIFF", "pages")]
)
def test_several_frames_are_refused(format: str, word: str) -> None:
    data = save(picture(), format, save_all=True, append_images=[picture(seed=9), picture(seed=20)])
    bad = refusal(data)
    assert bad.kind == "animated"
    assert f"3 {word}" in str(bad)


def test_photo_with_a_preview_behind_it_is_its_first_frame() -> None:
    data = save(picture(), "MPO", save_all=True, append_images=[picture((48, 32), seed=20)])
    image = normalise(data, DATA)
    assert (image.width, image.height) == (96, 64)
    assert image.data != data
    assert is_bare(image.data)


def test_pillows_warnings_do_not_leak(recwarn: pytest.WarningsRecorder) -> None:
    before = list(warnings.filters)
    normalise(palette(b"\x80\xff"), DATA)
    normalise(save(picture(), "JPEG", exif=b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\xff\xff"), DATA)
    assert not recwarn.list
    assert warnings.filters == before


@given(st.binary(max_size=200))
@settings(max_examples=150, deadline=None)
def test_any_bytes_give_an_image_or_a_refusal(data: bytes) -> None:
    accepted_or_refused(data)


SEEDS = [save(picture((40, 40)), name) for name in ("JPEG", "PNG", "GIF", "WEBP", "TIFF", "BMP")] + [
    save(picture((40, 40)), "JPEG", exif=exif(orientation=6), icc_profile=swapped_profile()),
    save(picture((40, 40)).quantize(8), "PNG", exif=exif(), transparency=b"\x10\x20"),
    save(picture((40, 40)), "TIFF", compression="tiff_lzw"),
    save(picture((40, 40)), "MPO", save_all=True, append_images=[picture()]),
]


@given(
    st.sampled_from(SEEDS), st.lists(st.tuples(st.integers(0, 1500), st.integers(0, 255)), max_size=12), st.integers(0)
)
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_spoilt_images_give_an_image_or_a_refusal(seed: bytes, changes: list[tuple[int, int]], cut: int) -> None:
    data = bytearray(seed)
    for at, value in changes:
        data[at % len(data)] = value
    accepted_or_refused(bytes(data[: len(data) - cut % 7 * 10]))


KINDS = {"empty", "not_an_image", "truncated", "too_small", "too_large", "animated", "unsupported", "unreadable"}


def accepted_or_refused(data: bytes) -> None:
    refused = None
    try:
        image = normalise(data, DATA)
    except BadImage as bad:
        refused = bad
    else:
        assert is_bare(image.data)
    assert refused is None or (refused.kind in KINDS and str(refused).endswith("."))


# --- the gallery -----------------------------------------------------------------------------------------


def test_gallery_keeps_by_digest(tmp_path: Path) -> None:
    gallery = Gallery(tmp_path / "new" / "gallery")
    for data in (save(picture(), "PNG"), JPEG_LIKE):
        image = normalise(data, DATA)
        digest = gallery.add(image)
        assert gallery.path(digest).name == digest + image.suffix
        assert gallery.read(digest) == data
        inode = gallery.path(digest).stat().st_ino
        gallery.add(image)
        assert gallery.path(digest).stat().st_ino == inode, "an existing file is kept"
    assert len(list(gallery.root.iterdir())) == 2, "no temporary files are left"


def test_absent_and_changed_files_are_refused(tmp_path: Path) -> None:
    gallery = Gallery(tmp_path)
    with pytest.raises(ConfigError, match="is not in"):
        gallery.read("0" * 64)
    digest = gallery.add(normalise(JPEG_LIKE, DATA))
    gallery.path(digest).write_bytes(JPEG_LIKE[:-1])
    with pytest.raises(ConfigError, match="was changed"):
        gallery.read(digest)
    with pytest.raises(ConfigError, match="was changed"):
        gallery.data_url(digest, AS_IS)


def test_unwritable_gallery_stops_the_run(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunStopped, match="cannot be written"):
        Gallery(tmp_path / "file").add(normalise(JPEG_LIKE, DATA))


def test_link_into_another_gallery(tmp_path: Path) -> None:
    gallery, other = Gallery(tmp_path / "a"), Gallery(tmp_path / "b")
    digest = gallery.add(normalise(JPEG_LIKE, DATA))
    gallery.link_into(other, digest)
    gallery.link_into(other, digest)
    assert other.read(digest) == JPEG_LIKE
    assert other.path(digest).stat().st_ino == gallery.path(digest).stat().st_ino


@pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="no second file system to copy to")
def test_link_across_file_systems_copies(tmp_path: Path) -> None:
    import tempfile

    gallery = Gallery(tmp_path)
    digest = gallery.add(normalise(JPEG_LIKE, DATA))
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        if os.stat(name).st_dev == tmp_path.stat().st_dev:
            pytest.skip("the second file system is the first")
        gallery.link_into(Gallery(Path(name)), digest)
        assert Gallery(Path(name)).read(digest) == JPEG_LIKE


def test_data_url_is_the_file_as_it_is(tmp_path: Path) -> None:
    gallery = Gallery(tmp_path)
    for data, kind in ((JPEG_LIKE, b"jpeg"), (save(picture(), "PNG"), b"png")):
        digest = gallery.add(normalise(data, DATA))
        url = gallery.data_url(digest, AS_IS)
        head, _, body = url.partition(b",")
        assert head == b"data:image/" + kind + b";base64"
        assert base64.b64decode(body, validate=True) == data
        gallery.path(digest).unlink()
        assert gallery.data_url(digest, AS_IS) is url, "encoded once"
    assert gallery.encoding(AS_IS) == "original"


def test_data_url_is_made_smaller_where_asked(tmp_path: Path) -> None:
    gallery = Gallery(tmp_path)
    data = save(picture((400, 200)), "PNG")
    digest = gallery.add(normalise(data, DATA))
    small = ImageSettings(max_side=100)
    assert gallery.encoding(small) == "jpeg90-100"
    head, _, body = gallery.data_url(digest, small).partition(b",")
    assert head == b"data:image/jpeg;base64"
    with Image.open(io.BytesIO(base64.b64decode(body))) as image:
        assert image.size == (100, 50)
    assert base64.b64decode(gallery.data_url(digest, ImageSettings(max_side=400)).partition(b",")[2]) == data
    assert gallery.data_url(digest, small) is gallery.data_url(digest, small)


def test_cache_is_bounded_by_bytes_and_drops_the_least_used(tmp_path: Path) -> None:
    images = [normalise(save(picture(seed=seed), "PNG"), DATA) for seed in range(3)]
    room = 2 * max(len(base64.b64encode(image.data)) for image in images) + 100
    gallery = Gallery(tmp_path, cache_bytes=room)
    first, second, third = (gallery.add(image) for image in images)
    urls = {digest: gallery.data_url(digest, AS_IS) for digest in (first, second)}
    assert gallery.data_url(first, AS_IS) is urls[first]
    gallery.data_url(third, AS_IS)
    assert gallery.data_url(first, AS_IS) is urls[first]
    assert gallery.data_url(second, AS_IS) is not urls[second]
    assert Gallery(tmp_path, cache_bytes=1).data_url(first, AS_IS) == urls[first]


# --- preparing -------------------------------------------------------------------------------------------


def test_prepare_accounts_for_every_image(tmp_path: Path) -> None:
    root = folder(tmp_path / "in", "a.png", "b/c.png", "d.png")
    (root / "a2.png").write_bytes((root / "a.png").read_bytes())
    (root / "a3.bmp").write_bytes(save(picture(), "BMP"))
    (root / "broken.jpg").write_bytes(JPEG_LIKE[:300])
    (root / "empty.gif").write_bytes(b"")
    seen: list[ImageRecord] = []
    gallery = Gallery(tmp_path / "gallery")
    records = prepare(DataSettings(root=str(root)), gallery, seen.append)
    assert seen == records
    assert [(r.source, r.kind or r.duplicate_of or r.status) for r in records] == [
        ("a.png", "used"),
        ("a2.png", "a.png"),
        ("a3.bmp", "a.png"),
        ("b/c.png", "used"),
        ("broken.jpg", "truncated"),
        ("d.png", "used"),
        ("empty.gif", "empty"),
    ]
    for record in records:
        assert ImageRecord.model_validate_json(record.model_dump_json()) == record
        assert record.digest is None or gallery.read(record.digest)
        assert (record.reason is None) == (record.status != "refused")


def test_prepare_without_a_usable_image_says_why(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").write_bytes(b"")
    (tmp_path / "b.jpg").write_bytes(b"hello")
    (tmp_path / "c.jpg").write_bytes(b"hello")
    with pytest.raises(
        ConfigError, match=r"None of the 3 chosen .*2 not_an_image, 1 empty.*a\.jpg: The file is empty\."
    ):
        prepare(DataSettings(root=str(tmp_path)), Gallery(tmp_path / ".gallery"))


def mark(gallery: Gallery) -> None:
    """Makes the index say a width that no image has, so that what is taken from it shows."""
    path = gallery.root / "index.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"width":96', b'"width":12345'))


def test_second_preparation_decodes_nothing(tmp_path: Path) -> None:
    root = folder(tmp_path / "in", "a.png", "b.png")
    (root / "c.png").write_bytes(b"hello")
    moved = DataSettings(root=str(folder(tmp_path / "moved", "z.png")))
    data, gallery = DataSettings(root=str(root)), Gallery(tmp_path / "gallery")
    first = prepare(data, gallery)
    assert prepare(data, gallery) == first
    assert len((gallery.root / "index.jsonl").read_text().splitlines()) == 3
    mark(gallery)
    assert [record.width for record in prepare(data, gallery)] == [12345, 12345, None]
    assert prepare(moved, gallery)[0].width == 12345, "known by its bytes, wherever it lies"
    assert prepare(replace(data, max_side=50), gallery)[0].width == 50, "other rules, other results"


def test_image_lost_from_the_gallery_is_made_again(tmp_path: Path) -> None:
    data, gallery = DataSettings(root=str(folder(tmp_path / "in", "a.png"))), Gallery(tmp_path / "gallery")
    first = prepare(data, gallery)
    assert first[0].digest is not None
    gallery.path(first[0].digest).unlink()
    assert prepare(data, gallery) == first
    assert gallery.read(first[0].digest)


def test_torn_and_foreign_lines_are_passed_over(tmp_path: Path) -> None:
    root = folder(tmp_path / "in", "a.png", "b.png")
    data, gallery = DataSettings(root=str(root)), Gallery(tmp_path / "gallery")
    first = prepare(data, gallery)
    path = gallery.root / "index.jsonl"
    lines = path.read_bytes().splitlines()
    path.write_bytes(b'\xff\xfe\n[]\n{"other": 1}\n\n' + lines[0] + b"\n" + lines[1][:40])
    assert prepare(data, gallery) == first
    mark(gallery)
    assert [record.width for record in prepare(data, gallery)] == [12345, 12345]


def write_entries(path: Path, name: str) -> None:
    with Index(path, "1") as index:
        for number in range(200):
            index.append(Entry(source=f"{name}{number}", rules="1", kind="k" * 300, reason="r"))


def test_several_processes_may_write_the_index_at_once(tmp_path: Path) -> None:
    path = tmp_path / "index.jsonl"
    workers = [multiprocessing.Process(target=write_entries, args=(path, name)) for name in "abc"]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(30)
        assert worker.exitcode == 0
    index = Index(path, "1")
    assert all(index.get(f"{name}{number}") for name in "abc" for number in range(200))
    assert Index(path, "2").get("a0") is None


def test_progress_that_fails_ends_the_preparation(tmp_path: Path) -> None:
    def stop(record: ImageRecord) -> None:
        raise KeyboardInterrupt

    data, gallery = DataSettings(root=str(PHOTOS)), Gallery(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        prepare(data, gallery, stop)
    assert len(prepare(data, gallery)) == 6


def test_many_threads_leave_pillow_as_it_was(tmp_path: Path) -> None:
    folder(tmp_path / "in", *(f"{number}.png" for number in range(40)))
    before = (Image.MAX_IMAGE_PIXELS, ImageFile.LOAD_TRUNCATED_IMAGES, list(warnings.filters))
    records = prepare(DataSettings(root=str(tmp_path / "in")), Gallery(tmp_path / "gallery"))
    assert [record.source for record in records] == sorted(f"{number}.png" for number in range(40))
    assert (Image.MAX_IMAGE_PIXELS, ImageFile.LOAD_TRUNCATED_IMAGES, list(warnings.filters)) == before


# --- real photos -----------------------------------------------------------------------------------------


@pytest.fixture
def coco() -> list[Path]:
    if not COCO.is_dir():
        pytest.skip(f"the COCO photos are not here ({COCO})")
    return sorted(COCO.glob("*.jpg"))


def test_real_photos_go_through(coco: list[Path], tmp_path: Path) -> None:
    gallery = Gallery(tmp_path)
    records = prepare(DataSettings(root=str(COCO)), gallery)
    assert [record.source for record in records] == [path.name for path in coco]
    for path, record in zip(coco, records, strict=True):
        assert record.status == "used"
        assert record.digest is not None
        assert gallery.read(record.digest) == path.read_bytes(), "COCO's files carry no metadata"


@pytest.mark.parametrize(
    "change",
    [lambda image: save(image, "PNG"), lambda image: save(image, "WEBP", lossless=True)],
    ids=["PNG", "WebP"],
)
def test_a_photo_is_recognised_in_another_container(change: Callable[[Image.Image], bytes]) -> None:
    data = (PHOTOS / "coffee.jpg").read_bytes()
    with Image.open(io.BytesIO(data)) as image:
        image.load()
        image.info = {}
        other = change(image)
    assert normalise(other, DATA).pixels == normalise(data, DATA).pixels
