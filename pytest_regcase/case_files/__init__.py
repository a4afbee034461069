"""Case and simulation files: the only place that knows their TOML, their paths and their format version.

Reads, checks, seals and edits them. Knows nothing of suppliers, agents, ledgers or where a trial came from.
"""

from pytest_regcase.case_files.editing import Sealed, append_record, seal_case, withdraw_evidence
from pytest_regcase.case_files.json_schemas import SchemaName, json_schema
from pytest_regcase.case_files.loading import LoadedCase, check_case, duplicate_ids, load_case
from pytest_regcase.case_files.new_case import new_case_text, write_new_case
from pytest_regcase.case_files.places_on_disk import (
    CASE_FILE,
    RealPlaces,
    find_case,
    find_case_files,
    inside,
    refuse_link,
    replace_file,
    writing,
)
from pytest_regcase.case_files.recorded import read_transcript, tree_digest
from pytest_regcase.case_files.replacing import finish_replacing, is_half_replaced, replace_files
from pytest_regcase.case_files.seal import observation_digest, seal_text
from pytest_regcase.case_files.simulations import (
    LoadedSimulation,
    built_in_folder,
    find_simulation,
    load_simulation,
    load_simulations,
)

__all__ = [
    "CASE_FILE",
    "LoadedCase",
    "LoadedSimulation",
    "RealPlaces",
    "SchemaName",
    "Sealed",
    "append_record",
    "built_in_folder",
    "check_case",
    "duplicate_ids",
    "find_case",
    "find_case_files",
    "find_simulation",
    "finish_replacing",
    "inside",
    "is_half_replaced",
    "json_schema",
    "load_case",
    "load_simulation",
    "load_simulations",
    "new_case_text",
    "observation_digest",
    "read_transcript",
    "refuse_link",
    "replace_file",
    "replace_files",
    "seal_case",
    "seal_text",
    "tree_digest",
    "withdraw_evidence",
    "write_new_case",
    "writing",
]
