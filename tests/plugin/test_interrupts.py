"""Ctrl-C and SIGTERM: the summary is printed, the run is unproven, what was made stays counted."""

import pytest

from tests.plugin.gate_project import GateProject


@pytest.mark.parametrize("how", ["interrupt", "terminate-pytest"])
@pytest.mark.parametrize("parallel", [(), ("-n", "2")], ids=["serial", "xdist"])
def test_an_interrupted_run_is_unproven(project: GateProject, parallel: tuple[str, ...], how: str) -> None:
    for number in range(4):
        project.add_case(f"trial-{number}", ["stall-v1"])
    project.script({"trial-1::stall-v1": [how]})
    result = project.run(*parallel)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["*= regcase =*", "*planned not run*", "UNPROVEN*"])
    rows = project.rows()
    assert rows
    # xdist tells of a worker that was interrupted by itself as of one that crashed.
    verdicts = {row.verdict for row in rows if (row.case_id, row.scenario) == ("trial-1", "stall-v1")}
    assert verdicts <= {"inconclusive"}
    ledger = project.ledger()
    session = ledger.session(rows[0].session_id)
    ledger.close()
    assert session is not None
    assert session.finished_at is None


def test_the_handler_of_before_is_put_back(project: GateProject) -> None:
    project.add_case("trial-1", [])
    script = project.pytester.makepyfile(
        runs="""
        import signal, sys, pytest
        def mine(number, frame): pass
        signal.signal(signal.SIGTERM, mine)
        status = pytest.main(["--regcase"])
        assert signal.getsignal(signal.SIGTERM) is mine
        sys.exit(status)
        """
    )
    result = project.pytester.runpython(script)
    assert result.ret == 0
