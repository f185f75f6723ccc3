"""The cases that the tools and what guards them were built for, and the test of each.

A row is a number in the list of cases, what goes in and what has to come out, and where that is
tried: `module::test`, or the name of a transcript.
"""

import ast
from functools import cache
from pathlib import Path

import pytest

HERE = Path(__file__).parent

ROWS = {
    # Reading before editing
    "T2 cat is not a read": "seeds::test_plan_mode_the_edit_guard_and_two_prompts",
    "T4 touch changes nothing": "edit::test_the_same_bytes_are_fresh_whatever_happened",
    "T6 own edits count": "edit::test_own_edits_and_writes_count_as_reads",
    "T8 read and edit in one answer": "calls::test_an_edit_after_a_read_in_one_answer_is_made",
    "T10 a miss allows to create": "write::test_a_file_that_was_looked_for_in_vain_is_created",
    "T12 an empty file counts": "write::test_a_file_that_was_read_is_overwritten",
    "T14 a new file needs no read": "write::test_a_new_file_needs_no_read",
    "T16 a window is enough to edit": "edit::test_a_window_is_enough_for_an_edit_anywhere",
    "T18 created meanwhile": "write::test_a_file_that_came_to_be_in_the_meantime_is_left_alone",
    "T20 became something else": "edit::test_a_file_that_became_something_else_is_left_alone",
    "T22 cancelled while asking": "cancel-while-asking",
    "T24 a command changed files": "aftermath::test_a_command_names_the_files_that_it_changed",
    "T26 changed while down": "edit::test_what_was_read_survives_the_process",
    "T28 two processes": "local::test_no_update_is_lost_between_two_processes",
    "T30 another name": "edit::test_another_name_of_the_path_is_the_same_file",
    "T32 away and back": "edit::test_the_same_bytes_are_fresh_whatever_happened",
    # Bytes and text
    "T34 mixed line ends": "splice::test_only_the_match_changes",
    "T36 byte order mark": "edit::test_an_edit_changes_the_match_and_shows_the_whole_file",
    "T38 Latin-1, not ASCII": "edit::test_an_edit_that_cannot_be_made_changes_nothing",
    "T40 overwriting another charset": "write::test_what_cannot_be_written_is_said",
    "T42 UTF-16 without a mark": "page::test_a_nul_is_no_text",
    "T44 no newline at the end": "splice::test_only_the_match_changes",
    "T46 NO-BREAK SPACE": "edit::test_an_edit_that_cannot_be_made_changes_nothing",
    "T48 curly quotes": "splice::test_only_the_match_changes",
    "T50 another normal form": "hint::test_a_near_miss_is_named",
    "T52 tabs": "splice::test_only_the_match_changes",
    "T54 empty old_string": "edit::test_an_edit_that_cannot_be_made_changes_nothing",
    "T56 two matches": "edit::test_an_edit_that_cannot_be_made_changes_nothing",
    "T58 equal but for blanks": "splice::test_a_near_miss_does_not_match",
    "T60 signs of patterns": "splice::test_only_the_match_changes",
    "T62 a window of 3 GB": "read::test_a_window_of_a_huge_file_takes_little_memory",
    "T64 too large to edit": "edit::test_a_file_that_became_something_else_is_left_alone",
    "T66 no regular file": "local::test_only_regular_files_are_opened",
    "T68 growing while read": "local::test_a_file_that_grows_while_it_is_read_ends",
    "T70 escapes in a text": "read::test_lines_come_after_their_numbers",
    "T72 wrong arguments": "calls-that-cannot-be-made",
    # Paths, links, metadata
    "T74 hard link": "local::test_a_hard_link_stays_one",
    "T76 extended attributes": "local::test_extended_attributes_stay",
    "T78 folder not writable": (
        "local::test_a_writable_file_in_a_folder_that_is_not_is_written_in_place"
    ),
    "T80 disk full": "local::test_a_full_disk_leaves_the_old_bytes",
    "T82 replaced in the last moment": (
        "local::test_what_another_writes_in_the_last_moment_is_put_back"
    ),
    "T84 folder swapped": (
        "edit::test_a_path_that_leads_elsewhere_while_a_person_decided_is_refused"
    ),
    "T86 outside": "read::test_the_policy_is_told_where_a_path_leads",
    "T88 odd paths": "paths::test_what_is_no_path_is_refused",
    "T90 inside of processes": "paths::test_the_inside_of_processes_is_off_limits",
    # Commands
    "T92 output through tee": "process::test_output_through_another_process_is_waited_for",
    "T94 ignores the signal": "process::test_a_time_out_is_told_apart_from_a_signal",
    "T96 cancelled": "process_cancel::test_a_turn_can_be_cancelled_at_every_moment",
    "T98 end of input": (
        "process_ends::test_the_end_takes_a_running_command_along_and_keeps_the_session"
    ),
    "T100 a long line": "output::test_the_cut_never_falls_into_a_character",
    "T102 invalid UTF-8": "output::test_bytes_that_are_no_text_become_replacement_characters",
    "T104 progress bar": "output::test_a_progress_display_of_many_steps_is_one_line",
    "T106 pagers and editors": "process::test_what_would_wait_for_a_person_does_not",
    "T108 code and both streams": "shell::test_the_model_gets_the_output_and_how_the_command_ended",
    "T110 no command": "shell::test_a_command_that_cannot_be_is_refused",
    "T112 workdir": "shell::test_what_a_command_would_touch_is_told",
    "T114 key under another name": "process::test_a_value_that_holds_a_loaded_key_stays_behind",
    "T116 open files": "process::test_a_command_has_no_open_files_but_the_three_and_no_terminal",
    "T118 terminal": "process::test_a_command_has_no_open_files_but_the_three_and_no_terminal",
    "T120 background": "jobs::test_a_job_outlives_its_prompt_and_not_its_session",
    # The sandbox
    "T122 git's own files": (
        "confined::test_a_command_that_is_not_for_the_repository_leaves_all_of_it"
    ),
    "T124 nothing appears": "confined::test_a_clean_checkout_stays_clean",
    "T126 devices": "sandbox::test_what_gets_out_under_which_layers",
    "T128 network": "sandbox::test_what_gets_out_under_which_layers",
    "T130 sockets": "sandbox::test_what_gets_out_under_which_layers",
    "T132 io_uring and x32": "sandbox::test_what_gets_out_under_which_layers",
    "T134 no helper": "confined::test_a_helper_that_cannot_start_runs_nothing",
    "T136 old Landlock": "sandbox::test_an_old_landlock_lets_files_be_emptied_and_says_so",
    "T138 no sandbox": "process_sandbox::test_without_a_sandbox_commands_ask_or_do_not_run",
    "T140 refused twice": "commands-in-a-sandbox",
    "T142 root of all files": "fence::test_the_root_of_all_files_is_never_writable",
    "T144 everyday programs": "sandbox::test_everyday_programs_work_inside",
    "T146 moving the repository": (
        "sandbox::test_what_works_on_the_repository_changes_its_history_and_nothing_else_of_it"
    ),
    # Permissions
    "T148 redirected, joined": "rules::test_an_allowed_beginning_covers_nothing_else",
    "T150 assignments": "rules::test_an_allowed_beginning_covers_nothing_else",
    "T152 options that act": "shell_line::test_a_command_that_may_do_more_is_not_harmless",
    "T154 denied in disguise": "rules::test_a_denied_command_is_found_wherever_it_stands",
    "T156 always for a joined line": (
        "rules::test_always_is_about_nothing_but_the_line_where_more_makes_no_sense"
    ),
    "T158 not to be read": "shell_line::test_a_command_that_may_do_more_is_not_harmless",
    "T160 unseen characters": (
        "permissions::test_a_command_with_unseen_characters_asks_and_shows_them"
    ),
    "T162 reading in plan mode": "policy::test_the_table_of_permissions",
    "T164 odd answers": "process_conversations::test_only_a_clear_yes_allows",
    "T166 what is shown": "permissions::test_a_request_shows_all_that_is_to_be_allowed",
    "T168 a project that widens": (
        "permissions::test_a_project_can_narrow_and_is_told_what_it_cannot"
    ),
    # Settings and keys
    "T170 .env of the workspace": "config::test_a_dotenv_file_of_the_workspace_is_not_read",
    "T172 addresses": "config::test_a_url_is_refused",
    "T174 certificates": "transport::test_a_certificate_that_nobody_vouches_for_is_refused",
    "T176 a key in the file": "config::test_a_complaint_names_line_key_and_remedy",
    "T178 files of secrets": "seek::test_what_is_found_is_told",
    # The wire
    "T180 odd sessions": "store::test_an_id_that_is_none_is_not_found",
    "T182 a long prompt": "peer::test_a_line_of_20_mib_in_small_pieces_is_read_in_linear_work",
    "T184 no JSON": "peer::test_a_line_that_is_no_json_is_a_parse_error",
    "T186 odd ids": "peer::test_an_id_comes_back_exactly_as_it_came",
    "T188 prints": "start::test_nobody_else_reads_or_writes_the_protocol",
    # What is kept
    "T190 a torn line": "store::test_a_torn_or_damaged_line_costs_only_itself",
    "T192 a damaged line": "store::test_a_torn_or_damaged_line_costs_only_itself",
    "T194 LINE SEPARATOR": "records::test_a_record_comes_back_as_it_was",
    "T196 killed in a call": "crashes::test_a_process_killed_at_any_moment_leaves_the_truth",
    "T198 modes": "store::test_nobody_else_can_read_a_session",
    # Searches
    "T200 without ripgrep": "search::test_both_find_the_same",
    "T202 options as patterns": "search::test_lines_are_found",
    "T204 what git ignores": "search::test_git_ignores_the_same",
    "T206 endless pattern": "search::test_a_pattern_without_end_is_given_up",
}

NUMBERS = range(2, 207, 2)


@cache
def defined_in(module: str) -> frozenset[str]:
    tree = ast.parse((HERE / f"test_{module}.py").read_text(encoding="utf-8"))
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(node.name for node in tree.body if isinstance(node, functions))


def test_every_case_has_a_test() -> None:
    assert [int(row.split()[0].removeprefix("T")) for row in ROWS] == [*NUMBERS]


@pytest.mark.parametrize("row", ROWS)
def test_the_test_of_a_case_exists(row: str) -> None:
    module, _, test = ROWS[row].rpartition("::")
    if module:
        assert test in defined_in(module)
    else:
        assert (HERE / "transcripts" / f"{test}.jsonl").exists()
