"""Drawn persons, and the card of a person in one document: how name, birth date and numbers are written there.

The names themselves stand with the layouts of each half (`Pool`), so that the halves share no person.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field, replace
from datetime import date, timedelta

MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
CONFUSED = (
    ("rn", "m"),
    ("m", "rn"),
    ("l", "1"),
    ("l", "I"),
    ("i", "l"),
    ("h", "b"),
    ("e", "c"),
    ("o", "0"),
    ("cl", "d"),
    ("d", "cl"),
    ("u", "ii"),
    ("a", "o"),
    ("n", "ri"),
    ("t", "f"),
    ("O", "0"),
    ("I", "l"),
    ("S", "5"),
    ("B", "8"),
    ("E", "F"),
    ("M", "H"),
    ("Z", "2"),
    ("G", "6"),
    ("A", "R"),
    ("U", "LI"),
    ("D", "O"),
    ("L", "I"),
    ("R", "P"),
    ("N", "H"),
    ("C", "G"),
)
VARIANTS = ("misread", "married", "abbreviated", "middle", "nickname", "suffix", "swapped", "capitals", "birth_format")


@dataclass(frozen=True)
class Pool:
    """What a half draws its persons, clinicians and institutions from."""

    women: tuple[tuple[str, str], ...]
    men: tuple[tuple[str, str], ...]
    unisex: tuple[str, ...]
    families: tuple[str, ...]
    clinicians: tuple[str, ...]
    institutions: tuple[tuple[str, str, str], ...]
    insurers: tuple[str, ...]
    streets: tuple[str, ...]


@dataclass(frozen=True)
class Institution:
    name: str
    address: str
    number_shape: str

    def draw_number(self, rng: random.Random) -> str:
        return "".join(
            str(rng.randint(1, 9)) if sign == "9" and at == 0 else str(rng.randint(0, 9)) if sign == "9" else sign
            for at, sign in enumerate(self.number_shape)
        )


@dataclass(frozen=True)
class Person:
    given: str
    nickname: str
    middle: str
    family: str
    former_family: str
    suffix: str
    sex: str
    born: date
    numbers: dict[str, str] = field(default_factory=dict, hash=False)

    def age(self, day: date) -> int:
        return day.year - self.born.year - ((day.month, day.day) < (self.born.month, self.born.day))

    @property
    def adult(self) -> bool:
        return self.age(date(2022, 1, 1)) >= 19


def draw_day(rng: random.Random, first: int, last: int) -> date:
    return date(first, 1, 1) + timedelta(days=rng.randrange((date(last, 12, 31) - date(first, 1, 1)).days + 1))


def draw_person(rng: random.Random, pool: Pool, taken: set[str], sex: str | None = None, child: bool = False) -> Person:
    """A person whose given and family names are not in `taken`; both are put there."""
    sex = sex or rng.choice("FM")
    names = pool.women if sex == "F" else pool.men
    given, nickname = rng.choice([pair for pair in names if pair[0] not in taken])
    family, former = rng.sample([name for name in pool.families if name not in taken], 2)
    taken |= {given, family, former}
    suffix = rng.choice(("Jr.", "Sr.", "III")) if sex == "M" and not child and rng.random() < 0.1 else ""
    middle = rng.choice([pair[0] for pair in names if pair[0] != given]) if rng.random() < 0.7 else ""
    born = draw_day(rng, 2009, 2019) if child else draw_day(rng, 1932, 2001)
    return Person(given, nickname, middle, family, former, suffix, sex, born)


def draw_namesake(rng: random.Random, person: Person, sex: str | None = None) -> Person:
    """Another person of the same name: another day, another year, and at times a generation between them."""
    while True:
        years = rng.choice((22, 26, 31, -24, -28, 1, 2, -3, 5, 9, -11))
        day = draw_day(rng, 2000, 2000)
        born = date(min(max(person.born.year + years, 1928), 2002), day.month, min(day.day, 28))
        if sum(
            x != y
            for x, y in zip(
                (born.year, born.month, born.day), (person.born.year, person.born.month, person.born.day), strict=False
            )
        ) == 3 and (born.month, born.day) != (person.born.day, person.born.month):
            return replace(person, born=born, sex=sex or person.sex, numbers={})


def write_day(day: date, style: str) -> str:
    month = MONTHS[day.month - 1]
    return {
        "mdy": f"{day.month:02}/{day.day:02}/{day.year}",
        "mdy_short": f"{day.month}/{day.day}/{day.year}",
        "mdy_two": f"{day.month:02}/{day.day:02}/{day.year % 100:02}",
        "dashes": f"{day.month:02}-{day.day:02}-{day.year}",
        "iso": day.isoformat(),
        "dots": f"{day.day:02}.{day.month:02}.{day.year}",
        "long_day_first": f"{day.day} {month} {day.year}",
        "long": f"{month} {day.day}, {day.year}",
        "abbreviated": f"{day.day:02}-{month[:3]}-{day.year}",
        "abbreviated_capitals": f"{day.day:02} {month[:3].upper()} {day.year}",
        "abbreviated_month_first": f"{month[:3]} {day.day}, {day.year}",
        "day_first": f"{day.day:02}/{day.month:02}/{day.year}",
        "day_first_dashes": f"{day.day:02}-{day.month:02}-{day.year}",
        "year_first": f"{day.year}/{day.month:02}/{day.day:02}",
        "year_first_abbreviated": f"{day.year}-{month[:3]}-{day.day:02}",
        "compact": f"{day:%Y%m%d}",
        "month_capitals": f"{month[:3].upper()} {day.day:02} {day.year}",
    }[style]


BIRTH_STYLES = (
    "mdy",
    "mdy_short",
    "mdy_two",
    "dashes",
    "iso",
    "long_day_first",
    "long",
    "abbreviated",
    "abbreviated_capitals",
    "abbreviated_month_first",
)


def misread(name: str, rng: random.Random) -> str:
    """One or two letters as a recognition engine confuses them; titles and the first letter of a word stay."""
    for _ in range(rng.choice((1, 1, 2))):
        kept = [m.span() for m in re.finditer(r"(?i)\b(?:mrs?|ms|jr|sr|ii+)\b", name)]
        places = [
            (m.start(), seen, read)
            for seen, read in CONFUSED
            for m in re.finditer(re.escape(seen), name)
            if m.start() > 0
            and name[m.start() - 1].isalpha()
            and not any(start <= m.start() < end for start, end in kept)
        ]
        if not places:
            return name
        at, seen, read = rng.choice(places)
        name = name[:at] + read + name[at + len(seen) :]
    return name


def strip_marks(name: str) -> str:
    return " ".join(name.split()).replace(" ,", ",").strip(" ,")


@dataclass
class Card:
    """A person as one document writes him or her."""

    person: Person
    institution: Institution
    seen: date
    rng: random.Random
    variant: str | None = None
    short_middle: bool = True
    account: str = ""
    accession: str = ""
    visit: str = ""

    def __post_init__(self) -> None:
        rng, person = self.rng, self.person
        self.given, self.family, self.suffix = person.given, person.family, person.suffix
        self.middle = person.middle and (person.middle[0] if self.short_middle else person.middle)
        self.birth_style: str | None = None
        self.capitals = self.swapped = False
        if self.variant == "married":
            self.family = rng.choice(
                (
                    person.former_family,
                    f"{person.family}-{person.former_family}",
                    f"{person.former_family} {person.family}",
                )
            )
        elif self.variant == "abbreviated":
            self.given, self.middle = person.given[0] + ".", rng.choice(("", self.middle))
        elif self.variant == "middle":
            self.middle = (
                rng.choice([form for form in ("", person.middle[:1], person.middle) if form != self.middle])
                if person.middle
                else ""
            )
        elif self.variant == "nickname":
            self.given = person.nickname
        elif self.variant == "suffix":
            self.suffix = ""
        elif self.variant == "swapped":
            self.swapped = True
        elif self.variant == "capitals":
            self.capitals = True
        elif self.variant == "birth_format":
            self.birth_style = rng.choice(BIRTH_STYLES)
        if self.variant and rng.random() < 0.4:
            self.birth_style = rng.choice(BIRTH_STYLES)
        self.letters = rng.getrandbits(32) if self.variant == "misread" else None

    @property
    def record_number(self) -> str:
        if self.institution.name not in self.person.numbers:
            self.person.numbers[self.institution.name] = self.institution.draw_number(self.rng)
        return self.person.numbers[self.institution.name]

    @property
    def age(self) -> int:
        return self.person.age(self.seen)

    @property
    def title(self) -> str:
        if not self.person.adult:
            return ""
        return "Mr." if self.person.sex == "M" else "Mrs." if sum(map(ord, self.person.family)) % 2 else "Ms."

    def write_name(self, order: str) -> str:
        """Write the name in an order.

        `last_first`, `last_first_capitals`, `last_first_tight_capitals`, `first_last`, `titled`, `family_titled`, `given`, `family`;
        `titled_surname` and `surname_first` have the family name alone in capitals.
        """
        given, family, middle, suffix = self.given, self.family, self.middle, self.suffix
        if order == "given":
            words = f"{given} {middle}"
        elif order == "family":
            words = f"{family} {suffix}"
        elif order == "family_titled":
            words = f"{self.title} {family}"
        elif order == "titled":
            words = f"{self.title} {given} {middle} {family}" + (f", {suffix}" if suffix else "")
        elif order == "titled_surname":
            words = f"{self.title.strip('.')} {given} {middle} {family.upper()}" + (f" {suffix}" if suffix else "")
        elif order == "surname_first":
            words = f"{family.upper()}{' ' + suffix if suffix else ''}, {given} {middle}"
            words = f"{words.strip()} ({self.title.strip('.')})" if self.title else words
        elif order.startswith("last_first"):
            comma = " " if self.swapped else "," if "tight" in order else ", "
            words = f"{family}{' ' + suffix if suffix else ''}{comma}{given} {middle}"
        elif self.swapped:
            words = f"{family} {given}"
        else:
            words = f"{given} {middle} {family}" + (f" {suffix}" if suffix else "")
        words = strip_marks(words)
        words = words.upper() if self.capitals or order.endswith("capitals") else words
        return words if self.letters is None else misread(words, random.Random(self.letters))

    def write_birth(self, style: str) -> str:
        return write_day(self.person.born, self.birth_style or style)

    def write_label(self, label: str) -> str:
        """A label of the birth date is misread too, now and then."""
        if self.variant == "misread" and label in ("DOB", "D.O.B.") and self.rng.random() < 0.4:
            return self.rng.choice(("Dos", "D0B", "OOB", "DO8"))
        return label
