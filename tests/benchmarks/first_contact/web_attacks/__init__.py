"""Strangers and careless clients at the review server, by an author who has not read the server's code.

``open.py`` may be read by anyone; ``sealed.py`` is run once, to measure: do not read, print or score it before. Each half has

``ATTACKS``         what a stranger does; the expectation says what the server must do meanwhile
``HONEST_CLIENTS``  what must not be refused: the price of every bound
``EXPRESSIONS``     JavaScript for a page in which a case is open; what it returns may hold no word of a document

    client = Client(port, codes={"dr_lee": "…", "dr_kim": "…"}, control=Control(…))
    observation = attack.run(client)              # a plain call, at most two minutes
    faults = find_faults(attack, observation, client, memory_mb=…)       # empty: as expected

``client.py`` explains what a harness may have to adapt: the paths of ``Layout`` and the methods of ``Control``.
"""
