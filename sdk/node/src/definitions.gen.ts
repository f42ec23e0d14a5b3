// Generated from `tgp tools --json` until the program has `serve --stdio`; the prompt is provisional.

import type { ToolInfo } from './protocol.gen.js';

export const GENERATED_WITH = "0.1.0";
export const DEFINITIONS_HASH = "";

export const STATIC_PROMPT: string = "You are an engineer who works through the kernel TGP.";

export type KernelToolName =
  | "audit_tail"
  | "call_upstream"
  | "check_tool"
  | "chronicle_append"
  | "chronicle_read"
  | "exec_code"
  | "exec_sql"
  | "exec_tool"
  | "fetch"
  | "fs_delete"
  | "fs_edit"
  | "fs_exists"
  | "fs_list"
  | "fs_read"
  | "fs_write"
  | "graph_ingest"
  | "graph_query"
  | "list_files"
  | "log"
  | "patch_file"
  | "read_file"
  | "recall"
  | "reconcile"
  | "review_plan"
  | "search"
  | "search_glob"
  | "search_grep"
  | "shell_exec"
  | "sync"
  | "test_run"
  | "test_tool"
  | "write_file";

export const DEFINITIONS: readonly ToolInfo[] = [
  {
    "name": "audit_tail",
    "aliases": [],
    "description": "List your own last calls and how they ended, oldest first.",
    "inputSchema": {
      "type": "object",
      "additionalProperties": false,
      "properties": {
        "last": {
          "type": "integer",
          "default": 20,
          "minimum": 1,
          "maximum": 200
        }
      }
    },
    "effect": "read",
    "dryRun": true
  },
  {
    "name": "call_upstream",
    "aliases": [],
    "description": "Call one tool of an upstream MCP server.",
    "inputSchema": {
      "type": "object",
      "additionalProperties": false,
      "properties": {
        "server": {
          "type": "string",
          "description": "The server's name, as in `mcp:NAME`.",
          "minLength": 1,
          "maxLength": 128
        },
        "tool": {
          "type": "string",
          "description": "The tool, by the name that the server gives it.",
          "minLength": 1,
          "maxLength": 128
        },
        "arguments": {
          "type": "object"
        },
        "pin": {
          "type": "string",
          "description": "The hash of the definition that the caller has seen."
        }
      },
      "required": [
        "server",
        "tool"
      ]
    },
    "effect": "network",
    "dryRun": true
  },
  {
    "name": "check_tool",
    "aliases": [],
    "description": "Compile a tool and check it: syntax, forbidden globals, imports, the eight standards, and types where the project has TypeScript 7.",
    "inputSchema": {
      "type": "object",
      "additionalProperties": false,
      "properties": {
        "path": {
          "type": "string",
          "description": "Such as `tools/math/fib.ts`.",
          "minLength": 1
        }
      },
      "required": [
        "path"
      ]
    },
    "effect": "read",
    "dryRun": true
  },
  {
    "name": "chronicle_append",
    "aliases": [
      "chronicle.append"
    ],
    "description": "Add an event to a chronicle of the project: why something was decided, what was learnt. Events are never changed or removed.",
    "inputSchema": {
      "type": "object",
      "additionalProperties": false,
      "properties": {
        "path": {
          "type": "string",
          "description": "A file, such as src/a.ts, or a chronicle, such as .sage/decisions.sage.",
          "minLength": 1
        },
        "event": {
          "type": "object",
          "properties": {
            "eventId": {
              "type": "string",
              "description": "Computed; leave it out."
            },
            "type": {
              "type": "string",
              "description": "Such as DECISION.",
              "minLength": 1
            },
            "timestamp": {
              "type": "string",
              "description": "RFC 3339, such as 2026-11-15T12:00:00Z."
            },
            "actor": {
              "type": "object",
              "properties": {
                "agent": {
                  "type": "string"
                },
                "id": {
                  "type": "string"
                }
              },
              "required": [
                "agent",
                "id"
              ],
              "description": "Who caused an event."
            },
            "filePath": {
              "type": "string"
            }
          },
          "required": [
            "type",
            "timestamp",
            "actor"
          ],
          "description": "Further fields may be added, such as `why`."
        }
      },
      "required": [
        "path",
        "event"
      ]
    },
    "effect": "write",
    "dryRun": true
  },
  {
    "name": "chronicle_read",
    "aliases": [
      "chronicle.read"
    ],
    "description": "Read the newest events of a chronicle, oldest first: what was done to a file, by whom, and why.",
    "inputSchema": {
      "type": "object",
      "additionalProperties": false,
      "properties": {
        "path": {
          "type": "string",
          "description": "A file, such as src/a.ts, or a chronicle, such as .sage/decisions.sage.",
          "minLength": 1
        },
        "last": {
          "type": "integer",
          "default": 50,
          "minimum": 1,
          "maximum": 1000
        }
      },
      "required": [
        "path"
      ]
    },
    "effect": "read",
    "dryRun": true
  },
  {
    "name": "exec_code",
    "aliases": [],
    "description": "Run a TypeScript program once, without storing it. It can import tools (`./math/fib`) and runs as `exec_tool` does.",
    "inputSchema": {
      "type": "object",
      "additionalProperties": false,
      "properties": {
        "code": {
          "type": "string",
          "description": "A script that returns its result, or a module with a default function.",
          "minLength": 1,
          "maxLength": 262144
        },
        "args": {
          "description": "What the program sees as `args`."
        },
        "limits": {
          "type": "object",
          "additionalProperties": false,
          "properties": {
            "cpuMs": {
              "type": "integer",
              "minimum": 0
            },
            "wallMs": {
              "type": "integer",
              "minimum": 0
            },
            "memoryMb": {
              "type": "integer",
              "minimum": 0
            }
          },
          "description": "Limits of one run. What is not given is not asked for."
        }
      },
      "required": [
        "code"
      ]
    },
    "effect": "execute",
    "dryRun": true
  },
  {
    "name": "exec_sql",
    "aliases": [
      "db.query",
      "db_query"
    ],
    "description": "Execute one SQL statement on the configured database, in its own transaction. Integers beyond 2^53 and decimals are returned as strings.",
    "inputSchema": {
      "type": "object",
      "additionalProperties": false,
      "properties": {
        "sql": {
          "type": "string",
          "description": "One statement. Pass values in `params`.",
          "minLength": 1,
          "maxLength": 1048576
        },
        "params": {
          "type": [
            "array",
            "object",
            "null"
          ],
          "items": {},
          "description": "A list for ? or $1, or an object for :name."
        }
      },
      "required": [
        "sql"
      ]
    },
    "effect": "write",
    "dryRun": true
  },
  {
    "name": "exec_tool",
    "aliases": [],
    "description": "Execute a tool in its own locked process. Its file writes and SQL are committed together when it returns, and undone when it fails.",
    "inputSchema": {
      "type": "object",
      "additionalProperties": false,
      "properties": {
        "path": {
          "type": "string",
          "description": "Such as `tools/math/fib.ts`.",
          "minLength": 1
        },
        "args": {
          "description": "The tool's argument: an object, or any JSON value it takes."
        },
        "limits": {
          "type": "object",
          "additionalProperties": false,
          "properties": {
            "cpuMs": {
              "type": "integer",
              "minimum": 0
            },
            "wallMs": {
              "type": "integer",
              "minimum": 0
            },
            "memoryMb": {
              "type": "integer",
              "minimum": 0
            }
          },
          "description": "Limits of one run. What is not given is not asked for."
        }
      },
      "required": [
        "path"
      ]
    },
    "effect": "execute",
    "dryRun": true
  },
  {
    "name": "fetch",
    "aliases": [],
    "description": "Send one HTTP request to a URL that `allowedFetchUrls` permits.",
    "inputSchema": {
      "type": "object",
      "additionalProperties": false,
      "properties": {
        "url": {
          "type": "string",
          "description": "An absolute http or https URL.",
          "minLength": 1
        },
        "method": {
          "type": "string"
        },
        "headers": {
          "anyOf": [
            {
              "type": "array",
              "items": {
                "type": "array",
                "items": {
                  "type": "string"
                },
                "minItems": 2,
                "maxItems": 2
              }
            },
            {
              "type": "object",
              "additionalProperties": {
                "type": "string"
              }
            }
          ],
          "description": "Headers in either of their forms."
        },
        "body": {
          "type": "string"
        },
        "bodyEncoding": {
          "type": "string",
          "enum": [
            "utf8",
            "base64"
          ],
          "description": "How a body is written as a JSON string.",
          "default": "utf8"
        },
        "redirect": {
          "enum": [
            "follow",
            "manual",
            "error"
          ]
        },
        "secret": {
          "type": "string"
        }
      },
      "required": [
        "url"
      ]
    },
    "effect": "network",
    "dryRun": true
  },
  {
    "name": "fs_delete",
    "aliases": [
      "fs.delete"
    ],
    "description": "Delete a file or an empty directory of the project.",
    "inputSchema": {
      "type": "object",
      "additionalProperties": false,
      "properties": {
        "path": {
          "type": "string",
          "description": "Such as `src/main.rs`.",
          "minLength": 1
        },
        "expected_sha256": {
          "type": "string",
          "description": "Refuse with ECONFLICT unless the file has this SHA-256.",
          "pattern": "^[0-9a-f]{64}$"
        }
      },
      "required": [
        "path"
      ]
    },
    "effect": "write",
    "dryRun": true
  },
  {
    "name": "fs_edit",
    "aliases": [
      "fs.edit",
      "Edit"
    ],
    "description": "Replace text in a file of the project: one {search, replace}, or several as `edits`, applied in order. All edits are applied, or none.",
    "inputSchema": {
      "type": "object",
      "additionalProperties": false,
      "properties": {
        "path": {
          "type": "string",
          "description": "Such as `src/main.rs`.",
          "minLength": 1
        },
        "search": {
          "type": "string",
          "description": "Literal text that occurs exactly once, unless `all` is true. Add lines to make it unique.",
          "minLength": 1
        },
        "replace": {
          "type": "string",
          "description": "The literal replacement."
        },
        "all": {
          "type": "boolean",
          "description": "Replace every occurrence."
        },
        "edits": {
          "type": "array",
          "items": {
            "type": "object",
            "properties": {
              "search": {
                "description": "Literal text that occurs exactly once, unless `all` is true. Add lines to make it unique.",
                "type": "string",
                "minLength": 1
              },
              "replace": {
                "description": "The literal replacement.",
                "type": "string"
              },
              "all": {
                "description": "Replace every occurrence.",
                "type": "boolean",
                "default": false
              }
            },
            "additionalProperties": false,
            "required": [
              "search",
              "replace"
            ]
          },
          "description": "Several replacements in turn, instead of one.",
          "minItems": 1,
          "maxItems": 100
        },
        "expected_sha256": {
          "type": "string",
          "description": "Refuse with ECONFLICT unless the file has this SHA-256.",
          "pattern": "^[0-9a-f]{64}$"
        }
      },
      "required": [
        "path"
      ]
    },
    "effect": "write",
    "dryRun": true
  },
  {
    "name": "fs_exists",
    "aliases": [
      "fs.exists"
    ],
    "description": "Check whether a path of the project exists, and of what kind it is.",
    "inputSchema": {
      "type": "object",
      "additionalProperties": false,
      "properties": {
        "path": {
          "type": "string",
          "description": "Such as `src/main.rs`.",
          "minLength": 1
        }
      },
      "required": [
        "path"
      ]
    },
    "effect": "read",
    "dryRun": true
  },
  {
    "name": "fs_list",
    "aliases": [
      "fs.list"
    ],
    "description": "List a directory of the project, sorted by path, with hidden files and without ignored ones. Kind `other` is a link or a special file.",
    "inputSchema": {
      "type": "object",
      "additionalProperties": false,
      "properties": {
        "path": {
          "type": "string",
          "description": "Default: the whole project."
        },
        "depth": {
          "type": "integer",
          "default": 1,
          "minimum": 1,
          "description": "Levels to show.",
          "maximum": 64
        },
        "limit": {
          "type": "integer",
          "default": 500,
          "minimum": 1,
          "maximum": 5000
        },
        "offset": {
          "type": "integer",
          "default": 0,
          "minimum": 0,
          "description": "Entries to skip."
        },
        "ignored": {
          "type": "boolean",
          "description": "Also show ignored files.",
          "default": false
        }
      }
    },
    "effect": "read",
    "dryRun": true
  },
  {
    "name": "fs_read",
    "aliases": [
      "fs.read",
      "Read"
    ],
    "description": "Read a text file of the project. A page has at most 2,000 lines and 256 KiB; if `truncated` is true, continue at `nextOffset`.",
    "inputSchema": {
      "type": "object",
      "additionalProperties": false,
      "properties": {
        "path": {
          "type": "string",
          "description": "Such as `src/main.rs`.",
          "minLength": 1
        },
        "offset": {
          "type": "integer",
          "default": 1,
          "minimum": 1,
          "description": "The first line, counted from 1."
        },
        "limit": {
          "type": "integer",
          "default": 2000,
          "minimum": 1,
          "description": "Lines at most.",
          "maximum": 2000
        }
      },
      "required": [
        "path"
      ]
    },
    "effect": "read",
    "dryRun": true
  },
  {
    "name": "fs_write",
    "aliases": [
      "fs.write",
      "Write"
    ],
    "description": "Create a file of the project, or replace its whole content. Missing directories are created.",
    "inputSchema": {
      "type": "object",
      "additionalProperties": false,
      "properties": {
        "path": {
          "type": "string",
          "description": "Such as `src/main.rs`.",
          "minLength": 1
        },
        "content": {
          "type": "string",
          "description": "The whole new content."
        },
        "expected_sha256": {
          "type": "string",
          "description": "Refuse with ECONFLICT unless the file has this SHA-256.",
          "pattern": "^[0-9a-f]{64}$"
        }
      },
      "required": [
        "path",
        "content"
      ]
    },
    "effect": "write",
    "dryRun": true
  },
  {
    "name": "graph_ingest",
    "aliases": [
      "graph.ingest"
    ],
    "description": "Read a commit and its history into the code graph, or the files as they are with `WORKTREE`. Only what is new is read.",
    "inputSchema": {
      "type": "object",
      "additionalProperties": false,
      "properties": {
        "commit": {
          "type": "string",
          "description": "Any revision, or WORKTREE.",
          "minLength": 1,
          "default": "HEAD"
        }
      }
    },
    "effect": "read",
    "dryRun": false
  },
  {
    "name": "graph_query",
    "aliases": [
      "graph.query",
      "GraphQuery"
    ],
    "description": "Ask the code graph in read-only Cypher. Nodes: File {path, name, language, test, lines}, Symbol {name, qualifiedName, kind, path, line, exported}, Package {name}, Commit {sha, time, author, message}, Tool. Relationships: DEFINES, CONTAINS, IMPORTS, CALLS, CHANGED_IN, PARENT, WAS_RENAMED_FROM.",
    "inputSchema": {
      "type": "object",
      "additionalProperties": false,
      "properties": {
        "query": {
          "type": "string",
          "description": "Such as MATCH (f:File)-[:IMPORTS]->(:File {path: $path}) RETURN f.path",
          "minLength": 1
        },
        "params": {
          "type": "object",
          "description": "Values for $names in the query."
        },
        "commit": {
          "type": "string",
          "description": "Any revision, or WORKTREE for the files as they are; default: the latest ingested commit.",
          "minLength": 1
        }
      },
      "required": [
        "query"
      ]
    },
    "effect": "read",
    "dryRun": true
  },
  {
    "name": "list_files",
    "aliases": [],
    "description": "List the files below a directory of the tool repository.",
    "inputSchema": {
      "type": "object",
      "additionalProperties": false,
      "properties": {
        "dir": {
          "type": "string",
          "description": "Such as `tools`; default: all."
        }
      }
    },
    "effect": "read",
    "dryRun": true
  },
  {
    "name": "log",
    "aliases": [
      "git.log",
      "git_log"
    ],
    "description": "List the versions of the tool repository, or of one of its files, newest first.",
    "inputSchema": {
      "type": "object",
      "additionalProperties": false,
      "properties": {
        "path": {
          "type": "string",
          "description": "Only the versions of this file.",
          "minLength": 1
        },
        "limit": {
          "type": "integer",
          "default": 20,
          "minimum": 1,
          "maximum": 1000
        }
      }
    },
    "effect": "read",
    "dryRun": true
  },
  {
    "name": "patch_file",
    "aliases": [],
    "description": "Replace one piece of text in a file of the tool repository, and commit the change.",
    "inputSchema": {
      "type": "object",
      "additionalProperties": false,
      "properties": {
        "path": {
          "type": "string",
          "description": "Such as `tools/math/fib.ts`.",
          "minLength": 1
        },
        "search": {
          "type": "string",
          "description": "Literal text that occurs exactly once. Add lines to make it unique.",
          "minLength": 1
        },
        "replace": {
          "type": "string",
          "description": "The replacement."
        }
      },
      "required": [
        "path",
        "search",
        "replace"
      ]
    },
    "effect": "write",
    "dryRun": true
  },
  {
    "name": "read_file",
    "aliases": [],
    "description": "Read a text file of the tool repository.",
    "inputSchema": {
      "type": "object",
      "additionalProperties": false,
      "properties": {
        "path": {
          "type": "string",
          "description": "Such as `tools/math/fib.ts`.",
          "minLength": 1
        }
      },
      "required": [
        "path"
      ]
    },
    "effect": "read",
    "dryRun": true
  },
  {
    "name": "recall",
    "aliases": [],
    "description": "Read a shortened result of this session in full.",
    "inputSchema": {
      "type": "object",
      "additionalProperties": false,
      "properties": {
        "id": {
          "type": "string",
          "description": "Such as `r3.1`.",
          "pattern": "^r[0-9]+\\.[0-9]+$"
        },
        "offset": {
          "type": "integer",
          "default": 0,
          "minimum": 0,
          "description": "The previous `nextOffset`."
        }
      },
      "required": [
        "id"
      ]
    },
    "effect": "read",
    "dryRun": true
  },
  {
    "name": "reconcile",
    "aliases": [
      "guardian.reconcile"
    ],
    "description": "Accept the current state where chronicle and code disagree about a file, or where an invariant is broken, so that halted work can resume.",
    "inputSchema": {
      "type": "object",
      "additionalProperties": false,
      "properties": {
        "path": {
          "type": "string",
          "description": "The file, such as src/a.ts.",
          "minLength": 1
        },
        "diff_ref": {
          "type": "string",
          "description": "The hash of the change that is accepted.",
          "minLength": 1,
          "default": "worktree"
        },
        "invariant": {
          "type": "string",
          "description": "The invariant whose violations are accepted as they are now.",
          "minLength": 1
        },
        "reason": {
          "type": "string",
          "minLength": 1
        }
      },
      "required": [
        "path"
      ]
    },
    "effect": "write",
    "dryRun": false
  },
  {
    "name": "review_plan",
    "aliases": [
      "guardian.review"
    ],
    "description": "Check a plan against the code graph, the chronicle and the invariants before you start. Nothing is executed. Step types: CREATE_FILE and WRITE_FILE {filePath, content}, EDIT_FILE {filePath, oldText, newText}, DELETE_FILE {filePath}, RENAME_FILE {filePath, to}, RUN_COMMAND {command}, RUN_TESTS, CALL_TOOL {tool, arguments}.",
    "inputSchema": {
      "type": "object",
      "additionalProperties": false,
      "properties": {
        "plan": {
          "type": "object",
          "additionalProperties": false,
          "properties": {
            "id": {
              "type": "string",
              "minLength": 1
            },
            "steps": {
              "type": "array",
              "items": {
                "description": "One step, with the fields of its type.",
                "type": "object",
                "properties": {
                  "type": {
                    "type": "string",
                    "minLength": 1
                  },
                  "filePath": {
                    "type": "string"
                  }
                },
                "required": [
                  "type"
                ]
              }
            }
          },
          "required": [
            "id",
            "steps"
          ],
          "description": "A plan of an agent: the steps that it wants to take."
        }
      },
      "required": [
        "plan"
      ]
    },
    "effect": "read",
    "dryRun": true
  },
  {
    "name": "search",
    "aliases": [
      "registry.search",
      "registry_search"
    ],
    "description": "Find forged tools by what they do. Call it before you write a tool. Verdict `reuse` (score 0.85 or more): run the tool. `review` (0.30 or more): read it, then decide. `forge`: write a new one.",
    "inputSchema": {
      "type": "object",
      "additionalProperties": false,
      "properties": {
        "query": {
          "type": "string",
          "description": "What the tool should do, such as `convert a CSV file to JSON`.",
          "minLength": 1,
          "maxLength": 10000
        },
        "limit": {
          "type": "integer",
          "default": 5,
          "minimum": 1,
          "maximum": 50
        }
      },
      "required": [
        "query"
      ]
    },
    "effect": "read",
    "dryRun": true
  },
  {
    "name": "search_glob",
    "aliases": [
      "search.glob",
      "Glob"
    ],
    "description": "Find files of the project by a glob, such as `src/**/*.rs` or `*.{ts,tsx}`. A pattern without a slash matches names at any depth. Ignored files are left out.",
    "inputSchema": {
      "type": "object",
      "additionalProperties": false,
      "properties": {
        "pattern": {
          "type": "string",
          "description": "Glob for the paths below `path`.",
          "minLength": 1,
          "maxLength": 1024
        },
        "path": {
          "type": "string",
          "description": "Directory; default: the whole project."
        },
        "limit": {
          "type": "integer",
          "default": 500,
          "minimum": 1,
          "maximum": 5000
        },
        "offset": {
          "type": "integer",
          "default": 0,
          "minimum": 0,
          "description": "Paths to skip."
        }
      },
      "required": [
        "pattern"
      ]
    },
    "effect": "read",
    "dryRun": true
  },
  {
    "name": "search_grep",
    "aliases": [
      "search.grep",
      "Grep"
    ],
    "description": "Search the text files of the project for a regular expression, line by line. Ignored files, binary files and links are left out.",
    "inputSchema": {
      "type": "object",
      "additionalProperties": false,
      "properties": {
        "pattern": {
          "type": "string",
          "description": "Regular expression (Rust's regex syntax).",
          "minLength": 1,
          "maxLength": 4096
        },
        "path": {
          "type": "string",
          "description": "File or directory; default: the whole project."
        },
        "glob": {
          "type": "string",
          "description": "Only files that match, such as `*.rs` or `src/**/*.ts`.",
          "minLength": 1,
          "maxLength": 1024
        },
        "ignore_case": {
          "type": "boolean",
          "description": "Match letters of both cases.",
          "default": false
        },
        "literal": {
          "type": "boolean",
          "description": "Take the pattern as plain text.",
          "default": false
        },
        "multiline": {
          "type": "boolean",
          "description": "Let a match go over several lines.",
          "default": false
        },
        "context": {
          "type": "integer",
          "default": 0,
          "minimum": 0,
          "description": "Lines to show before and after.",
          "maximum": 10
        },
        "limit": {
          "type": "integer",
          "default": 200,
          "minimum": 1,
          "maximum": 2000
        },
        "offset": {
          "type": "integer",
          "default": 0,
          "minimum": 0,
          "description": "Matches to skip."
        }
      },
      "required": [
        "pattern"
      ]
    },
    "effect": "read",
    "dryRun": true
  },
  {
    "name": "shell_exec",
    "aliases": [
      "shell.exec",
      "Bash"
    ],
    "description": "Run a command line with sh in a jail: it reads the project, writes to a private layer, has no network unless granted, and leaves no process behind. If it exits with 0, the files it changed are judged like `fs_write` and applied together; otherwise none is applied.",
    "inputSchema": {
      "type": "object",
      "additionalProperties": false,
      "properties": {
        "command": {
          "type": "string",
          "description": "For sh -c.",
          "minLength": 1,
          "maxLength": 65536
        },
        "cwd": {
          "type": "string",
          "description": "Directory below the project to start in."
        },
        "template": {
          "type": "string",
          "enum": [
            "shell",
            "build"
          ],
          "description": "`build` has more time and memory, and writes build output directly."
        },
        "timeout_ms": {
          "type": "integer",
          "description": "Shorter than the configured limit.",
          "minimum": 1
        },
        "network": {
          "type": "boolean",
          "description": "Ask for the network.",
          "default": false
        },
        "stdin": {
          "type": "string",
          "maxLength": 1048576
        },
        "keep_on_failure": {
          "type": "boolean",
          "description": "Apply changes whatever the exit code is.",
          "default": false
        }
      },
      "required": [
        "command"
      ]
    },
    "effect": "execute",
    "dryRun": true
  },
  {
    "name": "sync",
    "aliases": [
      "git.sync",
      "git_sync"
    ],
    "description": "Commit uncommitted files of the tool repository, pull from its remote, and push to it.",
    "inputSchema": {
      "type": "object",
      "additionalProperties": false,
      "properties": {}
    },
    "effect": "network",
    "dryRun": false
  },
  {
    "name": "test_run",
    "aliases": [
      "test.run"
    ],
    "description": "Run the project's tests in a jail, with the configured command or with the runner that its manifests name (cargo, npm, vitest, jest, node, pytest, go). Only build output is written to the project.",
    "inputSchema": {
      "type": "object",
      "additionalProperties": false,
      "properties": {
        "only": {
          "type": "string",
          "description": "A name or file as the runner's filter. Such a run can show that a test fails, never that all pass.",
          "minLength": 1,
          "maxLength": 1000
        },
        "timeout_ms": {
          "type": "integer",
          "description": "Shorter than the configured limit.",
          "minimum": 1
        }
      }
    },
    "effect": "execute",
    "dryRun": false
  },
  {
    "name": "test_tool",
    "aliases": [],
    "description": "Run the tests of tools: `tools/x.test.ts` beside `tools/x.ts`, written with `test` and `expect` of `@tgp/test`. What they write is undone.",
    "inputSchema": {
      "type": "object",
      "additionalProperties": false,
      "properties": {
        "path": {
          "type": "string",
          "description": "A test file, a tool, or a directory such as `tools/math`; default: all tests.",
          "minLength": 1
        }
      }
    },
    "effect": "execute",
    "dryRun": true
  },
  {
    "name": "write_file",
    "aliases": [],
    "description": "Create a file of the tool repository, or replace its content, and commit it. A new tool that duplicates others is refused with EPOLICY, which lists them as `similar`: use one of them, or list them all in `override_similar`.",
    "inputSchema": {
      "type": "object",
      "additionalProperties": false,
      "properties": {
        "path": {
          "type": "string",
          "description": "Such as `tools/math/fib.ts`.",
          "minLength": 1
        },
        "content": {
          "type": "string",
          "description": "The whole new content."
        },
        "override_similar": {
          "type": "array",
          "items": {
            "type": "string",
            "minLength": 1
          },
          "description": "The `similar` tools of a refusal, which do something else.",
          "maxItems": 50
        }
      },
      "required": [
        "path",
        "content"
      ]
    },
    "effect": "write",
    "dryRun": true
  }
];
