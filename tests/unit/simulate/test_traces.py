from pathlib import Path

import pytest

from streams.errors import ConfigError
from streams.simulate.traces import ARENA, bundled, find_trace, read_trace, to_arrivals

HEAD = "at_s,tenant,id,input_tokens,output_tokens"


def write(folder: Path, *lines: str) -> Path:
    path = folder / "trace.csv"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_the_bundled_trace_is_whole() -> None:
    rows = read_trace(bundled(ARENA))
    assert len(rows) == 1_500
    assert len({row.tenant for row in rows}) == 27
    assert sum(row.tokens for row in rows) == 588_695
    assert len({row.run_id for row in rows}) == 1_500
    assert rows[-1].at_us == 600_000_000


def test_no_such_trace() -> None:
    with pytest.raises(ConfigError, match=r"nothing\.csv"):
        bundled("nothing.csv")


def test_a_trace_is_found_by_its_path_or_else_by_its_name(tmp_path: Path) -> None:
    path = write(tmp_path, HEAD)
    assert find_trace(path) == path
    assert find_trace(Path(ARENA)).read_bytes() == bundled(ARENA).read_bytes()
    assert find_trace(tmp_path / ARENA) == tmp_path / ARENA  # a path is meant as it is
    with pytest.raises(ConfigError, match=f"there is no such file; .* {ARENA} and .*other"):
        find_trace(Path("other.csv"))


def test_time_is_compressed_and_tokens_are_summed(tmp_path: Path) -> None:
    rows = read_trace(write(tmp_path, HEAD, "40.5,a,7,10,90", "20.0,b,8,0,50"))
    first, second = to_arrivals(rows, compression=20, tokens_per_s=1_000)
    assert (first.at_ms, first.tenant, first.run_id, first.tokens, first.duration_ms) == (1_000, "b", "8", 50, 50)
    assert (second.at_ms, second.tokens, second.duration_ms) == (2_025, 100, 100)


def test_columns_may_stand_in_any_order_and_name_a_workflow(tmp_path: Path) -> None:
    path = write(tmp_path, "workflow,output_tokens,input_tokens,id,tenant,at_s,more", "chat,1,2,x,a,0.25,?")
    (row,) = read_trace(path)
    assert (row.workflow, row.tokens, row.run_id, row.tenant, row.at_us) == ("chat", 3, "x", "a", 250_000)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("x,a,1,1,1", "trace.csv:3: at_s"),
        ("-1,a,1,1,1", "trace.csv:3: at_s"),
        ("nan,a,1,1,1", "trace.csv:3: at_s"),
        ("1,,1,1,1", "trace.csv:3: tenant"),
        ("1,a,,1,1", "trace.csv:3: id"),
        ("1,a,1,1.5,1", "trace.csv:3: input_tokens"),
        ("1,a,1,1,-1", "trace.csv:3: output_tokens"),
        ("1,a,1,0,0", "trace.csv:3: output_tokens"),
        ("1,a,1,5", "trace.csv:3: output_tokens"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        read_trace(write(tmp_path, HEAD, "0,a,0,1,1", line))


def test_an_id_that_its_tenant_has_already_is_named(tmp_path: Path) -> None:
    """One scheduler would take them for one run, another for two."""
    path = tmp_path / "trace.csv"
    path.write_text("at_s,tenant,id,input_tokens,output_tokens\n0,a,1,1,1\n0,b,1,1,1\n1,a,1,1,1\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"trace.csv:4: id: .*already"):
        read_trace(path)


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="output_tokens"):
        read_trace(write(tmp_path, "at_s,tenant,id,input_tokens", "0,a,0,1"))


def test_an_unreadable_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"absent\.csv"):
        read_trace(tmp_path / "absent.csv")


@pytest.mark.parametrize("compression", [0, -1])
def test_time_cannot_stand_still(compression: int) -> None:
    with pytest.raises(ConfigError, match="compression"):
        to_arrivals([], compression=compression, tokens_per_s=1)
