"""Inputs for whatever leaves evalkit and comes back, by an author who has not read what reads and writes them.

Four sets, each with an open and a sealed half (a module ``open_…`` and one ``sealed_…``, other ideas in each). They are made at
test time from seeds; nothing of them is kept. A half is got with its ``build()``; who builds what is judged opens the open half only.

``…_source_files``
    Files to be cut into their documents. ``SourceFile`` has the bytes, the ``segments``, the ``words_of_page`` that a cut
    must show (as text, or in a picture that can be read) and for each segment the ``foreign_words`` of other pages and
    other patients. None of these may be anywhere in the cut's bytes or in a Bundle's entry for it.
    ``revealing.find_words(data, words)`` looks for them in every stream, string, archive, picture and JSON;
    ``revealing.read_shown_words(page, words)`` says what a page shows. A word of nobody (a deleted page's) is foreign to all.
    A mail's body and attachments are the ``part`` of a segment; pages count within their part.
``…_ground_truths``
    ``RoundTrip``: the pages' text, the records by revision, and if they come back ``equal``, the ``newest`` one equal,
    ``nothing`` goes out, or the thing is ``refused`` in words about ``reason``. Every quote is on its page, save one that is in a picture.
``…_label_studio``
    ``LabelFile``: an export of Label Studio and what a careful user expects, by document. Its schema and ``adapt(names, tasks)``
    are described in ``answers``. An answer that is ``accept``-ed has segments, quotes with boxes in percent, notes and the whole type.
    ``told`` are alternatives, divided by bars, of which the message has at least one each, whatever its capitals.
``…_types_files``
    ``TypesFile``: something at a path, which is read with its types or refused. ``build_documents()`` has for each sixth type ten
    documents of it and ten of the five types; of the sixth a model that has not learned it must say that it cannot tell.
"""
