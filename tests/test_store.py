"""The call store on real files, with real processes."""

from __future__ import annotations

import hashlib
import json
import resource
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vpref.errors import ConfigError
from vpref.journals import Journal
from vpref.store import CallStore


def key(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


def segments(root: Path) -> list[Path]:
    return sorted((root / "calls").glob("*.jsonl"))


def python(code: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_what_was_put_is_found_now_and_later(tmp_path: Path) -> None:
    with CallStore(tmp_path) as store:
        assert store.get(key("a")) is None
        store.put(key("a"), b'{"text":"\xc3\xa9"}')
        assert store.get(key("a")) == b'{"text":"\xc3\xa9"}'
        store.put(key("a"), b'{"text":"later"}')
        assert store.get(key("a")) == b'{"text":"\xc3\xa9"}'
    with CallStore(tmp_path) as again:
        assert again.get(key("a")) == b'{"text":"\xc3\xa9"}'
        assert len(again) == 1
    assert all(
        json.loads(line)["key"] == key("a") for path in segments(tmp_path) for line in path.read_text().splitlines()
    )


def test_a_store_that_only_reads_leaves_no_file(tmp_path: Path) -> None:
    with CallStore(tmp_path) as store:
        store.get(key("a"))
    assert segments(tmp_path) == []


@settings(max_examples=60, deadline=None)
@given(cut=st.integers(0, 400), junk=st.binary(max_size=30))
def test_a_file_cut_anywhere_keeps_its_whole_lines(
    tmp_path_factory: pytest.TempPathFactory, cut: int, junk: bytes
) -> None:
    root = tmp_path_factory.mktemp("store")
    with CallStore(root) as store:
        for number in range(4):
            store.put(key(str(number)), json.dumps({"text": "x" * number}).encode())
    (path,) = segments(root)
    whole = path.read_bytes()
    path.write_bytes(whole[:cut] + junk.replace(b"\n", b""))
    kept = whole[:cut].count(b"\n")
    with CallStore(root) as store:
        assert [store.get(key(str(number))) is not None for number in range(4)] == [
            number < kept for number in range(4)
        ]
        for number in range(4):
            store.put(key(str(number)), json.dumps({"text": "x" * number}).encode())
    with CallStore(root) as store:
        assert [json.loads(store.get(key(str(number))) or b"") for number in range(4)] == [
            {"text": "x" * number} for number in range(4)
        ]


def test_two_live_processes_see_each_others_replies_and_claims(tmp_path: Path) -> None:
    other = python(
        """
        import sys, time
        from pathlib import Path
        from vpref.store import CallStore
        store = CallStore(Path(sys.argv[1]))
        assert store.claim(sys.argv[2])
        print("claimed", flush=True)
        time.sleep(0.5)
        store.put(sys.argv[2], b'{"text":"theirs"}')
        store.release(sys.argv[2])
        print("put", flush=True)
        time.sleep(60)
        """,
        str(tmp_path),
        key("shared"),
    )
    assert other.stdout is not None
    with CallStore(tmp_path) as store:
        try:
            assert other.stdout.readline() == "claimed\n"
            assert not store.claim(key("shared"))
            assert store.claim(key("another"))
            store.release(key("another"))
            assert other.stdout.readline() == "put\n"
            assert store.claim(key("shared"))
            assert store.get(key("shared")) == b'{"text":"theirs"}'
        finally:
            other.kill()
            other.communicate()


def test_a_claim_dies_with_its_process(tmp_path: Path) -> None:
    other = python(
        """
        import sys, time
        from pathlib import Path
        from vpref.store import CallStore
        store = CallStore(Path(sys.argv[1]))
        assert store.claim(sys.argv[2])
        store.put("0" * 64, b"1")
        print("claimed", flush=True)
        time.sleep(60)
        """,
        str(tmp_path),
        key("shared"),
    )
    assert other.stdout is not None
    assert other.stdout.readline() == "claimed\n"
    with CallStore(tmp_path) as store:
        assert not store.claim(key("shared"))
        other.send_signal(signal.SIGKILL)
        other.communicate()
        assert store.claim(key("shared"))
        assert store.get("0" * 64) == b"1"


def test_many_writers_at_once_lose_and_tear_nothing(tmp_path: Path) -> None:
    writers = [
        python(
            """
            import hashlib, sys
            from pathlib import Path
            from vpref.store import CallStore
            with CallStore(Path(sys.argv[1])) as store:
                for number in range(300):
                    key = hashlib.sha256(f"{number}".encode()).hexdigest()
                    while not store.claim(key):
                        pass
                    if store.get(key) is None:
                        store.put(key, b'{"text":"%d"}' % number)
                    store.release(key)
            """,
            str(tmp_path),
        )
        for _ in range(4)
    ]
    for writer in writers:
        _, errors = writer.communicate(timeout=60)
        assert writer.returncode == 0, errors
    lines = [json.loads(line) for path in segments(tmp_path) for line in path.read_text().splitlines()]
    assert len(lines) == 300, "no key was stored twice"
    assert {line["reply"]["text"] for line in lines} == {str(number) for number in range(300)}


def test_a_full_disk_takes_back_the_torn_line(tmp_path: Path) -> None:
    code = """
        import resource, sys
        from pathlib import Path
        from vpref.errors import RunStopped
        from vpref.store import CallStore
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        with CallStore(Path(sys.argv[1])) as store:
            try:
                for number in range(100):
                    store.put(f"{number:064x}", b'{"text":"0123456789"}')
            except RunStopped as stop:
                print(number, stop)
        """
    full = python(code, str(tmp_path))
    out, errors = full.communicate(timeout=30)
    assert full.returncode == 0, errors
    count = int(out.split()[0])
    assert 0 < count < 100
    assert "Make room" in out
    (path,) = segments(tmp_path)
    assert path.read_bytes().endswith(b"\n")
    with CallStore(tmp_path) as store:
        assert len(store) == count


def test_many_segments_need_few_descriptors(tmp_path: Path) -> None:
    for number in range(200):
        with CallStore(tmp_path) as store:
            store.put(key(str(number)), b"{}")
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (100, before[1]))
    try:
        with CallStore(tmp_path) as store:
            assert all(store.get(key(str(number))) == b"{}" for number in range(200))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_a_store_that_cannot_be_written_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"store\.root"):
        CallStore(tmp_path / "file")


def test_a_journal_begun_anew_is_empty(tmp_path: Path) -> None:
    for _ in range(2):
        journal = Journal(tmp_path / "items.jsonl", fresh=True)
        journal.append(b"one")
        journal.close()
    assert (tmp_path / "items.jsonl").read_bytes() == b"one\n"
