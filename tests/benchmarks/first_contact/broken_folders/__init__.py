"""States in which a storage fault leaves an output folder, by an author who has not read the code that meets them.

Two halves, with different ideas in each: ``open`` may be read by anyone; ``sealed`` is opened once, to measure.
``second_open`` and ``second_sealed`` are about records, chains, modes, clocks and backups, and expect something of
``faults.STORING`` too: ``backup`` works as with the healthy folder if it stores every record as it is, and ``restore``, which makes
a backup and restores it to a new folder, if the queue lists the same cases there.

    from benchmarks.first_contact.broken_folders import faults, open
    for broken in open.IDEAS:
        obstacle = faults.find_obstacle(broken)          # "needs mounts", or None
        with broken.build(root, workspace) as scene:     # root: a copy of a healthy folder, which may be changed
            ...                                          # moment "before": the fault is there
            scene.strike()                               # other moments: the fault comes now
            subprocess.run(scene.wrap([...evalkit queue --output scene.root...]), timeout=broken.seconds)
        broken.mend(root, workspace)                     # the cause is gone: every command works again, by ``root``

The healthy folder has 23 documents, 8 waiting cases and at least 3 reviewed ones: ``evalkit samples``, ``evalkit run`` and
the simulated experts, who leave ``faults.WAITING``. It is at rest: no process has it open, and no ``-wal`` is beside it.
Folder and workspace must be reachable by the user nobody (parents of mode 0755) and on a disk, not in memory.

``expectation`` has an ``Answer`` for every command in ``faults.COMMANDS``. ``run`` is given the samples and a new document;
``export`` and ``report`` write outside of the folder; ``review`` means that the screen opens and lists the cases;
``open_review`` is ``SMEReviewHelper(root, …).list_pending_reviews()``; ``claim`` opens a case, ``save`` saves a review of it.
Each command is tried on a state of its own: build again for each, or restore the copy in between.

An answer is one of its ``outcomes``: ``works`` (as with the healthy folder, with ``waiting`` more cases), ``repairs`` (the same
after saying that the index was rebuilt) or ``refuses`` (exit status 1 or 2 and a message that has, whatever its capitals, one of the
alternatives of each ``gist``, divided by bars, and none of ``never``). For all outcomes ``faults.NEVER`` is forbidden too.
``audit verify`` refuses if it reports faults. If ``is_unchanged``, no file may differ after a command that only reads.
"""
