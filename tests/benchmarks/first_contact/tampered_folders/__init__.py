"""Changes to an output folder by somebody who can write into it, and honest work that must not look like one.

By an author who has not read what judges them. The half in ``open.py`` may be read by anyone. ``sealed.py`` is opened once, to
measure: whoever builds the checks does not read, print or score it before.

    base = some empty folder
    root = folder.build_folder(base)          # base/output, base/samples, base/audit.json (the export, kept elsewhere)
    for tampering in open.TAMPERINGS:         # each on a copy of the whole base; base/audit.json stays as it was
        tampering.apply(copy / "output", random.Random(seed))

A tampering that ``matters`` must be told by ``audit verify`` (``seen_by`` verify), by ``audit verify --against`` the export from
before (against), or by one of the two (either). It raises ``NotApplicableError`` if the folder has nothing that it could change:
then nothing was changed, and it counts as not tried. What does not matter is honest work (``seen_by`` is None): neither of
the two may tell it as a fault. Honest work goes through the command line, the library, or an administrator's file-system
work; it reads the original documents from ``samples`` beside the output folder.
"""
