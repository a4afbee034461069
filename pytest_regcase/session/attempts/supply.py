"""From a case and a simulation to what one supplier process is told. The same for an attempt and for `serve`.

Starts nothing and never prints.
"""

from pathlib import Path

from pytest_regcase.case_files import LoadedCase
from pytest_regcase.config import ClosingReply as ConfiguredReply
from pytest_regcase.config import UpstreamConfig
from pytest_regcase.records.simulation import Simulation
from pytest_regcase.supplier.inject import fault_spec, wire_entries
from pytest_regcase.supplier.spec import ClosingReply, PassThrough, SupplierSpec, new_token


def supplier_spec(
    loaded: LoadedCase | None,
    simulation: Simulation | None,
    *,
    wire_log: Path,
    t0: float,
    task_text: str | None,
    closing: ConfiguredReply | None,
    upstream: UpstreamConfig | None,
    reach: str,
) -> SupplierSpec:
    """Return what the supplier answers from, where the fault of `simulation` meets it, and where it records.

    Without a case nothing is replayed. With an `upstream` the real supplier answers.

    Raises:
        UnknownName, ExtensionError, FileError: the fault, or its settings, are none that there are.
    """
    replies = loaded.case.replies if loaded is not None else None
    failing_step = loaded.case.observation.failing_step if loaded is not None else None
    # Passed through, nothing is replayed from them: they only tell the main conversation from side calls.
    lines = tuple(line.to_sparse() for line in loaded.reply_lines()) if loaded is not None else ()
    fault = None
    if simulation is not None:
        fault = fault_spec(simulation, failing_step=failing_step, lines=lines, pass_through=upstream is not None)
    return SupplierSpec(
        wire_log=str(wire_log),
        t0=t0,
        lines=lines,
        lines_from="script" if replies is not None and replies.source == "script" else "replay",
        failing_step=failing_step,
        task_text=task_text,
        fault=fault,
        after_fault=tuple(line.to_sparse() for line in loaded.after_fault_lines()) if loaded is not None else (),
        closing_reply=ClosingReply(
            text=closing.text, tool_calls=tuple(call.to_sparse() for call in closing.tool_calls)
        )
        if closing is not None
        else ClosingReply(),
        pass_through=PassThrough(base_url=upstream.base_url, wire=upstream.wire, api_key_env=upstream.api_key_env)
        if upstream is not None
        else None,
        token=new_token(),
        wires=wire_entries(),
        reach=reach,
    )
