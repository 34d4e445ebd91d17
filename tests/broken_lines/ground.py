"""What all commands stand on: jobs, run directories, files, words, options, seeds."""

MUTATIONS = {
    "unit/running/test_jobs.py": [
        ("running/jobs.py", "work.do(job) if earlier is None else earlier", "work.do(job)"),
        ("running/jobs.py", "if not (keep_going and", "if (keep_going and"),
    ],
    "unit/running/test_run_directory.py": [
        ("running/run_directory.py", "earlier.config_hash != digest", "False"),
        ("running/run_directory.py", "self._earlier_weights.pop(name, now)", "self._earlier_weights.get(name, now)"),
        ("running/run_directory.py", "{**fingerprints, **others}", "dict(fingerprints)"),
    ],
    "security/test_foreign_runs.py security/test_overwrite.py": [
        ("running/run_directory.py", "refuse_strange_folder(path)\n    try", "\n    try")
    ],
    "unit/storage/test_atomic.py": [
        (
            "storage/atomic.py",
            "temporary.chmod(0o644)  # a report is there to be shared\n            replace_file(temporary, path)\n",
            "path.write_bytes(data)\n",
        ),
        ("storage/atomic.py", "    finally:\n        _discard(temporary, path)", "    finally:\n        pass"),
    ],
    "security/test_leftovers.py": [
        ("storage/atomic.py", "if (temporary / BEFORE).exists() and", "if False and"),
        ("edit/writing.py", "    remove_leftovers(folder / FOLDER)\n", ""),
        ("edit/writing.py", "content, look=False)", "content)"),
    ],
    "security/test_csv_cells.py": [
        ("words/visible.py", "storable(guarded(value))", "storable(value)"),
        ("words/visible.py", "[unguarded(cell) for", "[cell for"),
    ],
    "security/test_terminal.py": [("words/visible.py", '{"Cc", "Cf",', '{"Cc",')],
    "security/test_code_needs_consent.py unit/test_config.py": [("config.py", "if key in CONSENTS:", "if False:")],
    "cli/test_rank.py": [("options/_option.py", "if spec.about.decides", "if True")],
    "unit/test_seeding.py": [("seeding.py", '"\\x1f".join', '"".join')],
}
