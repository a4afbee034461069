"""Public bug reports that a plugin such as ours would also hit: where each is tried here, or why it is not.

The test of a report is named after it: ``test_<repository>_<number>_...`` in test_bug_reports_attempts.py,
_xdist.py, _reports.py and _collection.py. Listed here is what is tried under another name, or cannot be tried.
"""

TRIED_ELSEWHERE = {
    "rerunfailures#174, flaky#207": "test_rerunfailures_234_and_51_session_fixtures_beside_repeated_checks",
    "tavern#455": "test_every_try_is_its_own_report_and_row",
    "xdist#420, #868, #54": "test_a_recurrence_stops_the_runs_behind_it_and_no_others",
    "pytest#4702": "test_what_was_not_run_makes_the_gate_unproven",
    "pytest-split#26": "test_an_empty_part_is_pytests_own_exit_status_and_not_green",
    "xdist#932, #466": "test_a_crashed_attempt_is_a_row_and_makes_the_run_unproven",
    "rerunfailures#158, #157, xdist#650": "test_a_crashed_attempt_is_a_row_and_makes_the_run_unproven",
    "xdist#445, pytest-reporter#9": "test_a_node_id_is_enough_to_know_what_was_attempted",
    "xdist#1278": "test_a_test_that_ends_its_process_leaves_a_session_without_an_end_or_a_crash",
    "ProgramBench#64": "test_one_testcase_a_check_with_its_tries",
    "pytest#5884": "test_a_run_that_makes_no_attempt_decides_nothing_and_writes_no_row",
    "pytest#2455, pytest-jira-xray#26": "test_strict_settings_know_the_marker_and_no_ini_key_of_ours",
    "hypothesis#3159 and other imports at load": "test_a_plain_run_loads_the_options_and_nothing_else",
    "pytest#15047": "test_a_run_that_only_informs_does_not_touch_the_ledger",
    "pytest#4517": "test_what_was_not_run_makes_the_gate_unproven",
}
"""Report -> the test that tries it."""

NOT_TRIED = {
    "pytest#3639, fixtures in items that are no function": "case items use none; a marked function is a function",
    "pytest#5473 and the like, the rewrite warning": (
        "given to a plugin that is imported before it is registered, which an entry point is not"
    ),
    "pytest#2206, the cost of a collection hook": "a measurement; it is among the benchmarks",
    "allure-python#733, pytest-benchmark#145 and the like, each plugin itself": (
        "not installed with the tests. By hand, beside pytest 9.2: allure, asyncio, bdd, benchmark, cov, html,"
        " hypothesis, instafail, json-report, order, random-order, recording, reportlog, rich, split, subtests,"
        " sugar, testmon and trio run beside us; flaky, pytest-retry, forked and flakefinder are refused, see"
        " pytest_items/neighbours.py"
    ),
    "dd-trace-py#19576, flameox#447, an exit status misread by others": "theirs to read; a red run never exits 0",
}
"""Report -> why no test tries it."""
