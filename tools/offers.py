"""What the model is told of each tool, in the order in which it is offered them.

It is written by `pytest tests/test_offers.py --update`, from the tools themselves: so the first
request waits neither until they are loaded nor until pydantic has written their schemas.
"""

from tools.base import Offer

OFFERS = {
    "read": Offer(
        name="read",
        description="Read a text file; each line comes as `number: text`. A file must be read before it is edited, and read whole before it is overwritten.",
        parameters={
            "additionalProperties": False,
            "description": "What the model passes to read.",
            "properties": {
                "file_path": {
                    "description": "Absolute, or relative to the working directory.",
                    "title": "File Path",
                    "type": "string",
                },
                "offset": {
                    "anyOf": [{"type": "integer"}, {"type": "null"}],
                    "default": None,
                    "description": "First line, from 1 (default 1).",
                    "title": "Offset",
                },
                "limit": {
                    "anyOf": [{"type": "integer"}, {"type": "null"}],
                    "default": None,
                    "description": "Lines to read (default and most 2000).",
                    "title": "Limit",
                },
            },
            "required": ["file_path"],
            "title": "ReadArguments",
            "type": "object",
        },
    ),
    "edit": Offer(
        name="edit",
        description="Replace old_string, which must occur exactly once unless replace_all is set, by new_string in a file that was read before. It must match exactly, blanks and indentation included.",
        parameters={
            "additionalProperties": False,
            "description": "What the model passes to edit.",
            "properties": {
                "file_path": {
                    "description": "Absolute, or relative to the working directory.",
                    "title": "File Path",
                    "type": "string",
                },
                "old_string": {
                    "description": "The exact text to replace, without line numbers.",
                    "title": "Old String",
                    "type": "string",
                },
                "new_string": {
                    "description": "The text to put there.",
                    "title": "New String",
                    "type": "string",
                },
                "replace_all": {
                    "anyOf": [{"type": "boolean"}, {"type": "null"}],
                    "default": None,
                    "description": "Replace every occurrence.",
                    "title": "Replace All",
                },
            },
            "required": ["file_path", "old_string", "new_string"],
            "title": "EditArguments",
            "type": "object",
        },
    ),
    "write": Offer(
        name="write",
        description="Create a file, or replace the whole content of one that was read whole before. Prefer edit for changes.",
        parameters={
            "additionalProperties": False,
            "description": "What the model passes to write.",
            "properties": {
                "file_path": {
                    "description": "Absolute, or relative to the working directory.",
                    "title": "File Path",
                    "type": "string",
                },
                "content": {
                    "description": "The whole new content.",
                    "title": "Content",
                    "type": "string",
                },
            },
            "required": ["file_path", "content"],
            "title": "WriteArguments",
            "type": "object",
        },
    ),
    "shell": Offer(
        name="shell",
        description="Run a command in bash and get its output. Each call is a fresh shell: the working directory and variables do not persist, standard input is empty, there is no terminal. What a command leaves running ends with the call, unless run_in_background is set. To look at or change files, use read, edit and write: the output of cat does not count as reading.",
        parameters={
            "additionalProperties": False,
            "description": "What the model passes to run a command.",
            "properties": {
                "command": {
                    "description": "The bash command line.",
                    "title": "Command",
                    "type": "string",
                },
                "description": {
                    "description": "What it does, in 5 to 10 words, for the user.",
                    "title": "Description",
                    "type": "string",
                },
                "timeoutMs": {
                    "anyOf": [
                        {"maximum": 600000, "minimum": 1, "type": "integer"},
                        {"type": "null"},
                    ],
                    "default": None,
                    "description": "Default 120000, at most 600000.",
                    "title": "Timeoutms",
                },
                "workdir": {
                    "anyOf": [{"type": "string"}, {"type": "null"}],
                    "default": None,
                    "description": "Where it runs; relative to the session's folder, the default.",
                    "title": "Workdir",
                },
                "run_in_background": {
                    "anyOf": [{"type": "boolean"}, {"type": "null"}],
                    "default": None,
                    "description": "Let it run on, a server say, and go on at once: its id is for shell_job.",
                    "title": "Run In Background",
                },
            },
            "required": ["command", "description"],
            "title": "ShellArguments",
            "type": "object",
        },
    ),
    "exit_plan_mode": Offer(
        name="exit_plan_mode",
        description="Present the plan to the user and ask to leave plan mode. Call it once the plan is complete; nothing is changed before the user has approved.",
        parameters={
            "additionalProperties": False,
            "description": "What the model passes to present its plan.",
            "properties": {
                "plan": {
                    "description": "The whole plan in markdown; begins with `# ` and a title.",
                    "title": "Plan",
                    "type": "string",
                }
            },
            "required": ["plan"],
            "title": "ExitPlanModeArguments",
            "type": "object",
        },
    ),
    "request_user_input": Offer(
        name="request_user_input",
        description="Ask the user one or more questions and wait for the answers. Only for decisions that are the user's and that you cannot find out yourself.",
        parameters={
            "$defs": {
                "Choice": {
                    "additionalProperties": False,
                    "description": "One option of a question.",
                    "properties": {
                        "label": {"minLength": 1, "title": "Label", "type": "string"},
                        "description": {
                            "anyOf": [{"type": "string"}, {"type": "null"}],
                            "default": None,
                            "title": "Description",
                        },
                    },
                    "required": ["label"],
                    "title": "Choice",
                    "type": "object",
                },
                "Inquiry": {
                    "additionalProperties": False,
                    "description": "One question.",
                    "properties": {
                        "id": {
                            "description": "Short name of the answer, unique in this call.",
                            "minLength": 1,
                            "title": "Id",
                            "type": "string",
                        },
                        "header": {
                            "anyOf": [{"type": "string"}, {"type": "null"}],
                            "default": None,
                            "description": "One or two words.",
                            "title": "Header",
                        },
                        "question": {"minLength": 1, "title": "Question", "type": "string"},
                        "options": {
                            "anyOf": [
                                {"items": {"$ref": "#/$defs/Choice"}, "type": "array"},
                                {"type": "null"},
                            ],
                            "default": None,
                            "description": "None or empty: the user types the answer.",
                            "title": "Options",
                        },
                        "multi_select": {
                            "anyOf": [{"type": "boolean"}, {"type": "null"}],
                            "default": None,
                            "description": "Several options may be chosen.",
                            "title": "Multi Select",
                        },
                    },
                    "required": ["id", "question"],
                    "title": "Inquiry",
                    "type": "object",
                },
            },
            "additionalProperties": False,
            "description": "What the model passes to ask the user.",
            "properties": {
                "questions": {
                    "items": {"$ref": "#/$defs/Inquiry"},
                    "minItems": 1,
                    "title": "Questions",
                    "type": "array",
                },
                "title": {
                    "anyOf": [{"type": "string"}, {"type": "null"}],
                    "default": None,
                    "title": "Title",
                },
                "message": {
                    "anyOf": [{"type": "string"}, {"type": "null"}],
                    "default": None,
                    "description": "Why you ask; stands above the form.",
                    "title": "Message",
                },
            },
            "required": ["questions"],
            "title": "RequestUserInputArguments",
            "type": "object",
        },
    ),
    "update_goal": Offer(
        name="update_goal",
        description="End work on the user's goal: complete only when it is reached and verified, blocked only when you cannot go on without the user.",
        parameters={
            "additionalProperties": False,
            "description": "What the model passes to report on the goal.",
            "properties": {
                "status": {"enum": ["complete", "blocked"], "title": "Status", "type": "string"},
                "reason": {
                    "description": "What was verified, or what stands in the way.",
                    "title": "Reason",
                    "type": "string",
                },
            },
            "required": ["status", "reason"],
            "title": "UpdateGoalArguments",
            "type": "object",
        },
    ),
    "glob": Offer(
        name="glob",
        description="List files by a pattern of their paths. What git ignores is left out.",
        parameters={
            "additionalProperties": False,
            "description": "What the model passes to glob.",
            "properties": {
                "pattern": {
                    "description": "Such as *.py (at any depth), src/**/*.{ts,tsx} or /*.toml.",
                    "title": "Pattern",
                    "type": "string",
                },
                "path": {
                    "anyOf": [{"type": "string"}, {"type": "null"}],
                    "default": None,
                    "description": "Folder to look in (default: working directory).",
                    "title": "Path",
                },
            },
            "required": ["pattern"],
            "title": "GlobArguments",
            "type": "object",
        },
    ),
    "grep": Offer(
        name="grep",
        description="Search lines of text files. What git ignores, binary files and files of secrets are left out.",
        parameters={
            "additionalProperties": False,
            "description": "What the model passes to grep.",
            "properties": {
                "pattern": {
                    "description": "Regular expression, matched within each line.",
                    "title": "Pattern",
                    "type": "string",
                },
                "path": {
                    "anyOf": [{"type": "string"}, {"type": "null"}],
                    "default": None,
                    "description": "Folder or file (default: working directory).",
                    "title": "Path",
                },
                "glob": {
                    "anyOf": [{"type": "string"}, {"type": "null"}],
                    "default": None,
                    "description": "Only files like *.py or src/**/*.{ts,tsx}.",
                    "title": "Glob",
                },
                "ignore_case": {
                    "anyOf": [{"type": "boolean"}, {"type": "null"}],
                    "default": None,
                    "title": "Ignore Case",
                },
                "files_only": {
                    "anyOf": [{"type": "boolean"}, {"type": "null"}],
                    "default": None,
                    "description": "Only paths, each with its count of lines.",
                    "title": "Files Only",
                },
            },
            "required": ["pattern"],
            "title": "GrepArguments",
            "type": "object",
        },
    ),
    "todo_write": Offer(
        name="todo_write",
        description="Show the user the steps of longer work and how far each is; keep it current.",
        parameters={
            "$defs": {
                "Todo": {
                    "additionalProperties": False,
                    "description": "One step of the plan.",
                    "properties": {
                        "content": {"title": "Content", "type": "string"},
                        "status": {
                            "enum": ["pending", "in_progress", "completed"],
                            "title": "Status",
                            "type": "string",
                        },
                    },
                    "required": ["content", "status"],
                    "title": "Todo",
                    "type": "object",
                }
            },
            "additionalProperties": False,
            "description": "What the model passes to todo_write.",
            "properties": {
                "todos": {
                    "description": "All steps, in order; the list replaces the last one.",
                    "items": {"$ref": "#/$defs/Todo"},
                    "title": "Todos",
                    "type": "array",
                }
            },
            "required": ["todos"],
            "title": "TodoWriteArguments",
            "type": "object",
        },
    ),
    "shell_job": Offer(
        name="shell_job",
        description="Follow or end a command that shell started with run_in_background. poll waits up to 10 seconds for something new.",
        parameters={
            "additionalProperties": False,
            "description": "What the model passes to follow a job.",
            "properties": {
                "id": {"description": "As shell gave it.", "title": "Id", "type": "string"},
                "action": {
                    "description": "poll: what it printed since the last time, and whether it still runs.",
                    "enum": ["poll", "kill"],
                    "title": "Action",
                    "type": "string",
                },
            },
            "required": ["id", "action"],
            "title": "ShellJobArguments",
            "type": "object",
        },
    ),
}

CONFINED_SHELL = Offer(
    name="shell",
    description="Run a command in bash and get its output. Each call is a fresh shell: the working directory and variables do not persist, standard input is empty, there is no terminal. What a command leaves running ends with the call, unless run_in_background is set. To look at or change files, use read, edit and write: the output of cat does not count as reading. Commands run in a sandbox: they change files in the workspace and in /tmp only, without a network unless the user allowed one. .git changes only by lines that run git; its hooks and settings stay as they are.",
    parameters={
        "additionalProperties": False,
        "description": "What the model passes where commands run in a sandbox.",
        "properties": {
            "command": {
                "description": "The bash command line.",
                "title": "Command",
                "type": "string",
            },
            "description": {
                "description": "What it does, in 5 to 10 words, for the user.",
                "title": "Description",
                "type": "string",
            },
            "timeoutMs": {
                "anyOf": [{"maximum": 600000, "minimum": 1, "type": "integer"}, {"type": "null"}],
                "default": None,
                "description": "Default 120000, at most 600000.",
                "title": "Timeoutms",
            },
            "workdir": {
                "anyOf": [{"type": "string"}, {"type": "null"}],
                "default": None,
                "description": "Where it runs; relative to the session's folder, the default.",
                "title": "Workdir",
            },
            "run_in_background": {
                "anyOf": [{"type": "boolean"}, {"type": "null"}],
                "default": None,
                "description": "Let it run on, a server say, and go on at once: its id is for shell_job.",
                "title": "Run In Background",
            },
            "sandbox_permissions": {
                "anyOf": [
                    {
                        "enum": ["git-write", "workspace-write", "danger-full-access"],
                        "type": "string",
                    },
                    {"type": "null"},
                ],
                "default": None,
                "description": "Only to repeat a command that the sandbox denied something it must have: the limits it needs instead. The user is asked.",
                "title": "Sandbox Permissions",
            },
            "justification": {
                "anyOf": [{"type": "string"}, {"type": "null"}],
                "default": None,
                "description": "With sandbox_permissions: why, in a sentence for the user.",
                "title": "Justification",
            },
        },
        "required": ["command", "description"],
        "title": "ConfinedArguments",
        "type": "object",
    },
)
"""The shell, where this machine has a sandbox."""
