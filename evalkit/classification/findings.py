"""Verifiers' questions about the text, and the conversion of answers to issues.

Rules raise the same issues whichever model is asked. A model can add issues, never remove those of rules, and cannot
make an issue auto-fixable. A missing answer is a BLOCKER, because a failed check does not mean "no issues".
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

from pydantic import ConfigDict

from evalkit.classification.schema import (
    ClassificationOutput,
    DocumentType,
    Evidence,
    PresenceLevel,
    Segment,
    load_judging_guide,
)
from evalkit.core.records import DiscreetModel
from evalkit.document_types import cache_until_types_change, load_type_records
from evalkit.documents.bundle import DocumentBundle, Page
from evalkit.documents.identity.file_persons import has_patient_identifier
from evalkit.issue import Agent, Issue, IssueSeverity, number_issues
from evalkit.llm.model import Answer, DocumentQuestion, Question
from evalkit.llm.prompts import describe_pictures, fence_document, fence_text, fill_prompt_template

VerifierName = Literal["V2", "V3", "V4"]
#: First and last page, both included.
PageRange = tuple[int, int]

#: Maximum length of the words of a page that an issue shows.
MAX_SHOWN_LENGTH = 80

#: Words at each end of a long quote that verifiers' models are shown.
_SHOWN_END_WORDS = 4

#: Issue code of each verifier's findings in the text, from rules or from a model.
TEXT_FINDING_CODES: dict[Agent, str] = {"V2": "V2-SEMANTIC", "V3": "V3-CONTEXT", "V4": "V4-EVIDENCE-WEAK"}


class Finding(DiscreetModel):
    """One problem that a verifier, a check of evalkit, found in the text.

    Flat, so that any provider's structured output can carry it. The docstrings of the fields are the schema's descriptions.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", use_attribute_docstrings=True)

    reasoning: str
    """Why"""
    severity: IssueSeverity
    """BLOCKER: a main type is wrong beyond doubt; MAJOR: a person must look; MINOR: a remark"""
    message: str
    """A sentence for a clinician"""
    segment_index: int | None = None
    """Its segment"""
    document_type: str | None = None
    """Its type"""
    page: int | None = None
    """Its page"""
    quote: str | None = None
    """Its words, copied"""
    suggested_fix: str = ""
    """What to change"""


class Findings(DiscreetModel):
    """A verifier's whole answer; an empty list means that no problem was found."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    findings: tuple[Finding, ...]
    """Empty if all is right"""


class MergedFinding(Finding):
    """A finding, and the verifier that it belongs to."""

    check: VerifierName
    """Its check"""


class MergedFindings(Findings):
    """The answer of three verifiers; an empty list means that no problem was found."""

    findings: tuple[MergedFinding, ...]
    """Empty if all three checks found nothing"""


@dataclass(frozen=True)
class VerifierQuestion(DocumentQuestion[Findings]):
    """Question that a verifier (a check) asks a model about a classification.

    It comes from V2, V3 or V4, or from all three.
    """

    role: Agent | Literal["verifier"]
    """Verifier that asks; ``verifier`` if one question is asked for V2, V3 and V4 together."""
    prompt_name: str
    classification: ClassificationOutput
    bundle: DocumentBundle
    find_by_rules: Callable[[ClassificationOutput, DocumentBundle], Iterable[Finding]]
    """The verifier's rules, which answer the question if no language model is used."""
    pages: PageRange | None = None
    """First and last page that the question is about; None: the whole document."""
    answer_type: type[Findings] = Findings
    images: tuple[bytes, ...] = ()
    pictured_pages: tuple[int, ...] = ()

    def render_prompt(self) -> str:
        """Render the prompt: document first, then the claims, instructions last.

        The document's part is the same for all verifiers, so that a provider can cache it.
        """
        return render_verifier_prompt(
            self.prompt_name, self.classification, self.bundle, self.pages, self.pictured_pages
        )

    def offline(self) -> Findings:
        """Return the findings of the verifier's rules on these pages; cached."""
        return self._rule_findings

    @cached_property
    def _rule_findings(self) -> Findings:
        findings = self.find_by_rules(self.classification, self.bundle)
        return self.answer_type(findings=tuple(finding for finding in findings if _is_about_pages(finding, self.pages)))


class ShippedVerifier:
    """Base class of V1 to V4: rules, plus a question to a model where rules fail."""

    agent: ClassVar[Agent]
    prompt_name = ""
    """Prompt of the question; empty if the verifier asks nothing."""

    def find_in_text(self, _answer: ClassificationOutput, _bundle: DocumentBundle, /) -> Iterable[Finding]:
        """Answer the question by rules, for runs without a language model."""
        return ()

    def questions(
        self, classification: ClassificationOutput, bundle: DocumentBundle, pages: PageRange | None = None
    ) -> list[Question[Findings]]:
        """Return the question to a model about these pages, by default about all pages."""
        if not self.prompt_name:
            return []
        return [VerifierQuestion(self.agent, self.prompt_name, classification, bundle, self.find_in_text, pages)]

    def read(self, answers: Sequence[Answer[Findings]]) -> list[Issue]:
        """Convert the answers to issues; a missing answer is a BLOCKER."""
        return build_issues_from_answers(self.agent, answers)


def render_verifier_prompt(
    prompt_name: str,
    classification: ClassificationOutput,
    bundle: DocumentBundle,
    pages: PageRange | None = None,
    pictured_pages: Sequence[int] = (),
) -> str:
    """Fill the named prompt with document, type definitions and classification.

    ``pages``: only these pages and the segments that have one of them; None: all. ``pictured_pages``: whose pictures
    are sent.
    """
    prompt = fill_prompt_template(
        prompt_name,
        document=fence_document(bundle, bundle.iter_pages(*pages) if pages else None),
        guide=render_judging_guide(),
        classification=fence_text(render_unrepairable_claims(classification, pages), "classification", bundle.sha256),
    )
    return prompt + describe_pictures("Page_Pictures_For_Verifiers", pictured_pages)


@cache_until_types_change
def render_judging_guide() -> str:
    """Render types, presence levels and worked examples as text for a prompt."""
    guide = load_judging_guide()
    return "\n".join(
        [
            *(
                f"{name}: {record.definition} {'; '.join(record.includes)}."
                if record.includes
                else f"{name}: {record.definition}"
                for name, record in load_type_records().items()
            ),
            *(f"{level}: {meaning}." for level, meaning in guide["presence_levels"].items()),
            "Examples:",
            *(f"{example['case']}: {example['judgement']}" for example in guide["examples"]),
        ]
    )


def _is_about_pages(finding: Finding, pages: PageRange | None) -> bool:
    """Return True if the finding belongs to the window of these pages.

    A finding on the page shared with the previous window belongs to that window, a finding without a page to the first.
    """
    return pages is None or pages[0] - (pages[0] == 1) < (finding.page or 1) <= pages[1]


def render_unrepairable_claims(answer: ClassificationOutput, pages: PageRange | None = None) -> str:
    """Render the parts of a classification that no repair changes, for a prompt.

    Verifiers are asked about these parts only: after a repair the question is the same, so its answer is reused. They judge
    for themselves, so the classifier's reasoning is left out. Of a long quote they get both ends: they have the page, and
    rules compare its words. ``pages`` (first and last): only segments that have one of these pages; None: all segments.
    """
    overall_levels = [
        f"{entry.document_type} {entry.presence_level}"
        for entry in answer.document_mixture
        if entry.presence_level is not PresenceLevel.NO_EVIDENCE
    ]
    lines = [
        f"Whole file: {answer.dominant_type_overall or 'cannot tell'} ({', '.join(overall_levels)})",
        f"Vendors: {'; '.join(map(_join_words, answer.vendor_signals)) or 'none'}",
    ]
    for segment in answer.segments:
        if pages is None or (segment.start_page <= pages[1] and pages[0] <= segment.end_page):
            lines.append(
                f"Segment {segment.segment_index}, pages {segment.start_page}-{segment.end_page}: "
                f"{segment.dominant_type or 'cannot tell'}"
            )
            lines += [
                f"- {presence.document_type} {presence.presence_level} {presence.confidence:g}: "
                + "; ".join(map(_render_evidence, presence.top_evidence))
                for presence in segment.segment_composition
                if presence.presence_level is not PresenceLevel.NO_EVIDENCE
            ]
    return "\n".join(lines)


def _render_evidence(evidence: Evidence) -> str:
    return f'p{evidence.page} "{_join_words(evidence.snippet)}"' + " (seen_in_picture)" * evidence.seen_in_picture


def _join_words(text: str) -> str:
    """Join the words of a text in one line; of a long text only those at both ends."""
    words = text.split()
    if len(words) > 2 * _SHOWN_END_WORDS:
        words[_SHOWN_END_WORDS:-_SHOWN_END_WORDS] = ["…"]
    return " ".join(words)


def iter_segment_primary_types(answer: ClassificationOutput) -> Iterator[tuple[Segment, DocumentType]]:
    """Yield each segment with each type that is marked PRIMARY in it."""
    for segment in answer.segments:
        for presence in segment.segment_composition:
            if presence.presence_level is PresenceLevel.PRIMARY:
                yield segment, presence.document_type


def cut_quote_unless_identifying(page: Page, text: str, start: int, end: int) -> str | None:
    """Return a short quote around ``text[start:end]``, unless it names a patient.

    Whole words, about ``MAX_SHOWN_LENGTH`` characters. None if the quote would identify the patient: issues are stored
    where pages are not.
    """
    line_start, line_end = text.rfind("\n", 0, start) + 1, text.find("\n", start)
    line_end = len(text) if line_end < 0 else line_end
    margin = max(0, MAX_SHOWN_LENGTH - (end - start)) // 2
    first, last = max(line_start, start - margin), min(line_end, start + margin + min(end - start, MAX_SHOWN_LENGTH))
    words = text[first:last].split(" ")
    if first > line_start and text[first - 1] != " " and len(words) > 1:
        words = words[1:]
    if last < line_end and text[last] != " " and len(words) > 1:
        words = words[:-1]
    quote = " ".join(words).strip()
    return None if not quote or has_patient_identifier(quote, page) else quote


def build_issues_from_answers(agent: Agent, answers: Sequence[Answer[Any]]) -> list[Issue]:
    """Convert one verifier's answers to issues, numbered from ``AGENT-0001``.

    A missing answer becomes a BLOCKER.
    """
    return number_issues(agent, (issue for answer in answers for issue in _convert_answer(agent, answer)))


def build_agent_failure_issue(agent: Agent, failure: str | None) -> Issue:
    """Build the BLOCKER that reports that an agent could not answer, and why."""
    return Issue.create(
        agent,
        f"{agent.upper()}-AGENT-FAILED",
        IssueSeverity.BLOCKER,
        f"{agent} could not answer: {failure or 'no reason given'}",
        location=agent,
        suggested_fix="Run the document again, or decide without this check",
    )


def is_agent_failure_issue(issue: Issue) -> bool:
    """Return True if the issue reports that a verifier could not answer."""
    return issue.code.endswith("-AGENT-FAILED")


def drop_model_issues_covered_by_rules(rule_issues: Sequence[Issue], model_issues: Iterable[Issue]) -> list[Issue]:
    """Return the model's issues that no rule's issue reports already.

    An issue is covered by a rule's issue with the same code, segment, type and page that is at least as severe.
    """
    severity_by_key: dict[tuple[object, ...], IssueSeverity] = {}
    for issue in rule_issues:
        key = _get_issue_key(issue)
        severity_by_key[key] = min(
            severity_by_key.get(key, issue.severity), issue.severity, key=lambda severity: severity.rank
        )
    return [
        issue
        for issue in model_issues
        if _get_issue_key(issue) not in severity_by_key
        or issue.severity.rank < severity_by_key[_get_issue_key(issue)].rank
    ]


def _get_issue_key(issue: Issue) -> tuple[object, ...]:
    return issue.code, issue.segment_index, issue.document_type, issue.page


def _convert_answer(agent: Agent, answer: Answer[Findings]) -> Iterator[Issue]:
    if answer.value is None:
        yield build_agent_failure_issue(agent, answer.failure)
    else:
        # one answer to the merged question has the findings of several verifiers
        findings = answer.value.findings
        yield from convert_findings_to_issues(
            agent, (finding for finding in findings if getattr(finding, "check", agent) == agent)
        )


def convert_findings_to_issues(agent: Agent, findings: Iterable[Finding]) -> Iterator[Issue]:
    """Convert a verifier's findings to unnumbered issues of origin "model"."""
    type_names = {kind.value for kind in DocumentType}
    for finding in findings:
        kind = finding.document_type if finding.document_type in type_names else None
        segment_index = finding.segment_index
        location_parts = [
            f"segment {segment_index}" if segment_index is not None else "document",
            *([kind] if kind else []),
        ]
        yield Issue.create(
            agent,
            TEXT_FINDING_CODES[agent],
            finding.severity,
            finding.message,
            origin="model",
            location=" → ".join(location_parts),
            suggested_fix=finding.suggested_fix,
            segment_index=segment_index,
            document_type=kind,
            page=finding.page,
            quote=finding.quote,
        )
