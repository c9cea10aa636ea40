"""Import of Label Studio's answers as reviews, with all checks of a review.

What an annotator saw is not known, so a review lists no page and no issue as seen, and vouches for the file's type and
the documents only where the annotation states them. Each answer is taken over, left out or refused by itself.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from math import isfinite
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, ValidationError, model_validator

from evalkit.core.clocks import format_iso_seconds, utc_now
from evalkit.core.grouping import group_pairs
from evalkit.core.records import DiscreetModel, describe_first_error
from evalkit.core.safe_io import read_regular_file
from evalkit.core.wording import format_count
from evalkit.errors import EvalkitError, NotFound, ReviewRefused, UsageError
from evalkit.evaluation.label_studio.regions import (
    ANSWER_PREFIX,
    TRUTH_PREFIX,
    LabelledAnswer,
    build_results,
    choose_new_quotes,
    list_flag_rows,
    parse_results,
)
from evalkit.review import (
    SECOND_SUFFIX,
    CaseOpinions,
    ClassificationCorrection,
    Review,
    ReviewerRoster,
    ReviewSubmitter,
    ShownMachineAnswers,
    SMEPacket,
    Submission,
    compute_packet_digest,
    get_base_case_id,
    open_index,
    read_packet,
)
from evalkit.review.claiming import require_not_taken
from evalkit.review.corrections import ClassificationPart
from evalkit.review.ground_truth import ImportedAnswer
from evalkit.settings import Settings
from evalkit.store import (
    OutputFolder,
    OutputIndex,
    build_dict_without_duplicate_keys,
    hash_canonical_json,
    open_existing_output_folder,
)

TOOL_NAME = "Label Studio"
_MAX_FILE_BYTES = 256 * 1024 * 1024
#: Clocks of two machines may differ so much.
_CLOCK_TOLERANCE = timedelta(minutes=5)

#: Nobody reads a page in less time. A shorter one per page does not show that a copied answer was read.
_MIN_SECONDS_PER_PAGE = 1.0
#: Label Studio's word for a result that a person drew, or changed.
_ORIGINS_OF_PERSONS = ("manual", "prediction-changed")

ImportStatus = Literal["imported", "unchanged", "skipped", "not read", "refused"]


@dataclass(frozen=True)
class ImportedRow:
    """Result of importing one annotation, or of a task without annotation."""

    task: str
    """The task's number in Label Studio, or its place in the file."""
    case_id: str
    """Empty if the task names no case."""
    annotator: str
    """The annotator's e-mail address or number in Label Studio; empty if unknown."""
    status: ImportStatus
    """``unchanged``: the same answer was imported before, or is evalkit's own. ``not read``: a copy of the program's answer,
    and Label Studio's fields do not show that a person read the pages."""
    message: str
    """What was recorded, or the reason why nothing was."""


class _Model(DiscreetModel):
    model_config = ConfigDict(frozen=True)


class _TaskData(_Model):
    case_id: str
    packet_sha256: str
    document_sha256: str
    total_pages: int
    answer_shown: bool = True


class _User(_Model):
    id: int | None = None
    email: str = ""


class _Verdict(_Model):
    """A reviewer's word on an annotation, where Label Studio has reviewers."""

    accepted: bool
    created_at: str = ""


class _Annotation(_Model):
    id: int | str = ""
    completed_by: _User | int | str | None = None
    updated_by: _User | int | str | None = None
    result: list[Any]
    was_cancelled: bool = False
    lead_time: float | None = None
    created_at: str | float | None = None
    updated_at: str | float | None = None
    parent_prediction: Any = None
    reviews: list[_Verdict] | None = None
    parent_annotation: Any = None

    @property
    def annotator(self) -> str:
        """The annotator's e-mail address or number; empty if unknown."""
        return next(iter(_list_names(self.completed_by)), "")

    @property
    def is_changed_by_another(self) -> bool:
        """True if somebody else than the annotator has changed the annotation last."""
        changers = _list_names(self.updated_by)
        return bool(changers) and set(changers).isdisjoint(_list_names(self.completed_by))

    @property
    def seconds(self) -> float:
        """Seconds of work on Label Studio's screen; 0 if none or unknown."""
        return self.lead_time if self.lead_time and self.lead_time > 0 and isfinite(self.lead_time) else 0.0

    def is_unread_copy(self, page_count: int) -> bool:
        """Return True if this repeats the program's answer, without proof of reading."""
        is_copy = self.parent_prediction is not None or self.has_only_ids_of(ANSWER_PREFIX)
        origins = [row.get("origin") for row in self.result if isinstance(row, dict)]
        is_changed = not set(origins).isdisjoint(_ORIGINS_OF_PERSONS)
        return is_copy and self.seconds < page_count * _MIN_SECONDS_PER_PAGE and not (is_changed and self.seconds)

    @property
    def is_rejected(self) -> bool:
        """True if a reviewer has rejected it, and none is known to have accepted it later."""
        verdicts = self.reviews or ()
        accepted_at = max((verdict.created_at for verdict in verdicts if verdict.accepted), default="")
        return any(not verdict.accepted and not "" < verdict.created_at < accepted_at for verdict in verdicts)

    def has_only_ids_of(self, prefix: str) -> bool:
        ids = [str(row.get("id", "")) if isinstance(row, dict) else "" for row in self.result]
        return bool(ids) and all(result_id.startswith(prefix) for result_id in ids)


class _Task(_Model):
    id: int | str = ""
    data: Any = None
    annotations: list[Any] | None = None
    completions: Annotated[list[Any], Field(max_length=0)] = []  # exports of versions before 1.0
    predictions: list[Any] = []
    drafts: list[Any] = []

    @model_validator(mode="before")
    @classmethod
    def _require_whole_characters(cls, raw_task: Any) -> Any:
        try:
            json.dumps(raw_task, ensure_ascii=False).encode()
        except UnicodeEncodeError:  # half of a pair of surrogates, which JSON can write and UTF-8 cannot
            raise ValueError("a text has a broken character. Correct it in Label Studio, and export again.") from None
        except RecursionError:
            raise ValueError("the JSON is nested too deeply") from None
        return raw_task


def _list_names(user: _User | int | str | None) -> list[str]:
    """List the e-mail address and the number of a user, as far as they are known."""
    names = (user.email, user.id) if isinstance(user, _User) else (user,)
    return [str(name).casefold() for name in names if name not in (None, "")]


@dataclass(frozen=True)
class _GivenAnswer:
    """One annotation of a task whose data was understood."""

    task: str
    data: _TaskData
    has_predictions: bool
    annotation: _Annotation
    answer: LabelledAnswer
    answered_at: datetime | None
    reviewer: str


def import_label_studio_answers(
    output: Path | str, path: Path | str, annotators: Mapping[str, str]
) -> list[ImportedRow]:
    """Import the answers of Label Studio's JSON export as reviews of an output folder.

    Args:
        output: The output folder whose cases were exported.
        path: The file that Label Studio exported with format JSON.
        annotators: By e-mail address or number of the annotator in Label Studio, the name of a reviewer of the output
            folder. Answers of anybody else are refused.

    One row for each annotation and for each task without one. UsageError if the file is not such an export, or if a
    reviewer may not decide cases.
    """
    raw_tasks = _read_tasks(Path(path))
    output_folder = open_existing_output_folder(output, Settings.load().database)
    deciding_reviewers = ReviewerRoster(output_folder).list_deciding_reviewers()
    if unknown := sorted({*annotators.values()} - {*deciding_reviewers}):
        raise UsageError(
            f"{unknown[0][:60]!r} is not a reviewer who may decide cases of this output folder",
            code="REVIEWER-UNKNOWN",
            remedy="`evalkit reviewers list` prints all names and roles; `evalkit reviewers add NAME` adds one.",
        )
    with open_index(output_folder) as index:
        return list(_AnswerImport(output_folder, index, annotators, utc_now()).iterate_rows(raw_tasks))


def parse_annotators(pairs: Sequence[str]) -> dict[str, str]:
    """Parse ``NAME=WHO`` pairs of reviewer names and Label Studio users.

    UsageError if a pair has another shape, or if one annotator has two names.
    """
    reviewer_by_annotator: dict[str, str] = {}
    for pair in pairs:
        reviewer, separator, annotator = (part.strip() for part in pair.partition("="))
        if not (reviewer and separator and annotator):
            raise UsageError(
                f"{pair[:80]!r} is not a pair NAME=WHO",
                code="IMPORT-ANNOTATOR",
                remedy="Give the reviewer and the e-mail address or number in Label Studio, such as dr_lee=lee@hospital.org.",
            )
        if reviewer_by_annotator.setdefault(annotator.casefold(), reviewer) != reviewer:
            raise UsageError(
                f"the annotator {annotator[:80]!r} was given as two reviewers",
                code="IMPORT-ANNOTATOR",
                remedy="Give each annotator once.",
            )
    return reviewer_by_annotator


def _read_tasks(path: Path) -> list[Any]:
    remedy = "Export the project from Label Studio in the format JSON, and give that file."
    try:
        text = read_regular_file(path, _MAX_FILE_BYTES).decode("utf-8-sig")
        raw_tasks = json.loads(text, object_pairs_hook=build_dict_without_duplicate_keys)
    except OSError as error:
        reason = error.strerror or "not a regular file of at most 256 MB"
        raise UsageError(f"{path.name} cannot be read ({reason})", code="IMPORT-FILE", remedy=remedy) from error
    except (ValueError, RecursionError):  # "from None", because the message would quote the file
        raise UsageError(
            f"{path.name} is not a complete JSON file in UTF-8, or has a key twice", code="IMPORT-FILE", remedy=remedy
        ) from None
    if isinstance(raw_tasks, dict) and raw_tasks.keys() >= {"data", "annotations"}:
        return [raw_tasks]  # one task, as Label Studio's API gives it
    if not isinstance(raw_tasks, list):
        raise UsageError(f"{path.name} is not a list of tasks", code="IMPORT-FILE", remedy=remedy)
    return raw_tasks


class _AnswerImport:
    def __init__(
        self, output_folder: OutputFolder, index: OutputIndex, annotators: Mapping[str, str], now: datetime
    ) -> None:
        self._output_folder, self._index, self._now = output_folder, index, now
        self._annotators = {name.casefold(): reviewer for name, reviewer in annotators.items()}

    def iterate_rows(self, raw_tasks: Sequence[Any]) -> Iterator[ImportedRow]:
        """Import the answers case by case; the rows of what cannot be read come first."""
        stated_answers: list[_GivenAnswer] = []
        for number, raw_task in enumerate(raw_tasks, 1):
            for item in self._iterate_answers(raw_task, f"entry {number} of the file"):
                if isinstance(item, ImportedRow):
                    yield item
                else:
                    stated_answers.append(item)
        for answers in group_pairs((answer.data.case_id, answer) for answer in stated_answers).values():
            yield from self._import_case(answers)

    def _iterate_answers(self, raw_task: Any, place: str) -> Iterator[ImportedRow | _GivenAnswer]:
        try:
            task = _Task.model_validate(raw_task)
        except ValidationError as error:
            yield ImportedRow(place, "", "", "refused", f"not a task of Label Studio: {describe_first_error(error)}")
            return
        label = f"task {task.id}" if task.id != "" else place
        if task.data is None or task.annotations is None:
            reason = (
                "the task has no data or no annotations. Export it as JSON; JSON-MIN leaves out the pages of answers."
            )
            yield ImportedRow(label, "", "", "refused", reason)
            return
        try:
            data = _TaskData.model_validate(task.data)
            self._require_same_case(data)
        except ValidationError as error:
            yield ImportedRow(label, "", "", "refused", f"not a task of evalkit: {describe_first_error(error, 'data')}")
            return
        except EvalkitError as error:
            yield ImportedRow(label, str(task.data.get("case_id"))[:80], "", "refused", str(error))
            return
        row = partial(ImportedRow, label, data.case_id)
        if not task.annotations:
            drafts = " (a draft that nobody submitted is left out)" if task.drafts else ""
            yield row("", "skipped", f"it has no annotation: nobody has answered it{drafts}")
        for raw_annotation in task.annotations:
            try:
                annotation = _Annotation.model_validate(raw_annotation)
            except ValidationError as error:
                yield row("", "refused", f"not an annotation: {describe_first_error(error)}")
                continue
            refusal = self._explain_leaving_out(annotation, data.total_pages)
            if refusal:
                yield row(annotation.annotator, *refusal)
                continue
            try:
                yield self._read_answer(label, data, task, annotation)
            except ReviewRefused as error:
                yield row(annotation.annotator, "refused", str(error))

    def _require_same_case(self, data: _TaskData) -> None:
        """Raise EvalkitError unless the task shows the case as it is now."""
        remedy = "Export the cases again, and have this case answered again in Label Studio."
        try:
            packet = read_packet(self._output_folder, data.case_id)
        except NotFound:
            raise NotFound(
                "this output folder has no such case, so the task is another folder's, or the document was removed",
                code="IMPORT-CASE",
                remedy="With --output, name the output folder from which the tasks were exported.",
            ) from None
        if (
            packet.kind != "classification"
            or packet.is_attention_check
            or data.case_id != get_base_case_id(data.case_id)
        ):
            raise ReviewRefused(
                "cases of this kind are never exported to Label Studio", code="IMPORT-CASE", remedy=remedy
            )
        if compute_packet_digest(packet) != data.packet_sha256 or packet.total_pages != data.total_pages:
            raise ReviewRefused(
                "the case is not the one that was exported: its document was run again, or the task is another folder's",
                code="IMPORT-CASE",
                remedy=remedy,
            )

    def _explain_leaving_out(self, annotation: _Annotation, page_count: int) -> tuple[ImportStatus, str] | None:
        """Explain why an annotation is no person's answer; None if it is one."""
        reasons: tuple[tuple[bool, ImportStatus, str], ...] = (
            (annotation.was_cancelled, "skipped", "the annotator skipped the task"),
            (
                not annotation.seconds and annotation.has_only_ids_of(TRUTH_PREFIX),
                "unchanged",
                "evalkit's own truth, which nobody has changed",
            ),
            (
                annotation.is_unread_copy(page_count),
                "not read",
                f"a copy of the program's answer, and {annotation.seconds:.1f} s of work in Label Studio do not show that "
                f"anyone read {format_count(page_count, 'page')}. Have a person answer it.",
            ),
            (
                not annotation.seconds and annotation.parent_annotation is not None,
                "refused",
                "a copy of another annotation, on which nobody has worked in Label Studio. Have a person answer it.",
            ),
            (not annotation.result, "refused", "the annotation is empty. Have the task answered, or skipped."),
            (
                annotation.is_rejected,
                "refused",
                "a reviewer has rejected the annotation in Label Studio. Have it corrected and accepted there.",
            ),
            (
                not annotation.annotator,
                "refused",
                "the annotator is not known: the file names nobody. Have a person who has an account answer the task.",
            ),
            (
                self._find_reviewer(annotation) is None,
                "refused",
                f"the annotator {(who := annotation.annotator[:80])!r} is not known as a reviewer. Add --annotator NAME={who}.",
            ),
            (
                annotation.is_changed_by_another,
                "refused",
                "another person has changed the annotation. Each person must submit an own annotation.",
            ),
        )
        return next(((status, message) for is_so, status, message in reasons if is_so), None)

    def _find_reviewer(self, annotation: _Annotation) -> str | None:
        names = _list_names(annotation.completed_by)
        return next((self._annotators[name] for name in names if name in self._annotators), None)

    def _read_answer(self, label: str, data: _TaskData, task: _Task, annotation: _Annotation) -> _GivenAnswer:
        answer = parse_results(annotation.result, data.total_pages)
        time_text = annotation.updated_at or annotation.created_at
        answered_at = self._parse_time(time_text)
        if time_text and answered_at is None:
            remark = "its time is unreadable, has no zone or lies in the future, so it is not recorded"
            answer = replace(answer, remarks=(*answer.remarks, remark))
        return _GivenAnswer(
            task=label,
            data=data,
            has_predictions=bool(task.predictions) or annotation.parent_prediction is not None,
            annotation=annotation,
            answer=answer,
            answered_at=answered_at,
            reviewer=self._find_reviewer(annotation) or "",
        )

    def _parse_time(self, text: str | float | None) -> datetime | None:
        """Parse the time of an annotation; None without one that can be trusted."""
        try:
            time = datetime.fromisoformat(str(text))
        except ValueError:
            return None
        is_plausible = time.tzinfo is not None and time <= self._now + _CLOCK_TOLERANCE
        return time.astimezone(UTC) if is_plausible else None

    def _import_case(self, answers: Sequence[_GivenAnswer]) -> Iterator[ImportedRow]:
        """Import the answers to one case, oldest first; a colleague's is a second opinion."""
        chosen: list[_GivenAnswer] = []
        for own in group_pairs((stated.reviewer, stated) for stated in answers).values():
            *earlier, newest = sorted(own, key=_sort_by_time)
            others = [stated for stated in earlier if stated.answer != newest.answer]
            if any(stated.answered_at in (None, newest.answered_at) for stated in others):
                reason = (
                    "the same person answered the case several times, not alike, and it is not known which answer is "
                    "the later one. Delete the annotations that do not count."
                )
                yield from (self._build_row(stated, "refused", reason) for stated in own)
                continue
            for stated in earlier:
                if stated in others:
                    yield self._build_row(stated, "skipped", "a later annotation of the same person counts")
                else:
                    yield self._build_row(stated, "unchanged", "repeated by another annotation of the same person")
            chosen.append(newest)
        chosen.sort(key=_sort_by_time)
        for number, stated in enumerate(chosen):
            try:
                yield self._submit(stated, asks_second=number == 0 and len(chosen) > 1)
            except EvalkitError as error:
                yield self._build_row(stated, "refused", str(error))

    def _submit(self, stated: _GivenAnswer, *, asks_second: bool) -> ImportedRow:
        opinions = CaseOpinions.read(self._output_folder, stated.data.case_id)
        answer_sha256 = hash_canonical_json(
            {
                "reviewer": stated.reviewer,
                "results": build_results(stated.answer, [(1, 1)] * stated.data.total_pages, ""),
            }
        )
        own_reviews = [
            review
            for reviews in opinions.numbered_reviews_by_case_id.values()
            for _, review in reviews
            if review.reviewer == stated.reviewer
        ]
        origin = own_reviews[-1].imported if own_reviews else None
        if origin and origin.answer_sha256 == answer_sha256:
            return self._build_row(stated, "unchanged", "the same answer was imported before")
        case_id = self._choose_case_id(opinions, stated)
        if newest := opinions.numbered_reviews_by_case_id[case_id][-1:]:
            self._require_newer(stated, newest[0][1])
        submitter = ReviewSubmitter(self._output_folder, self._index, stated.reviewer, lambda: self._now)
        loaded_case = submitter.load_case(case_id)
        if loaded_case.bundle.sha256 != stated.data.document_sha256:
            raise ReviewRefused(
                "the task shows another document, or another version of it",
                code="IMPORT-CASE",
                remedy="Export the cases again.",
            )
        is_blind = loaded_case.packet.is_first_review_blind and not (stated.data.answer_shown or stated.has_predictions)
        submission = replace(
            _build_submission(stated.answer, loaded_case.packet),
            seconds_active=stated.annotation.seconds or None,
            shown=ShownMachineAnswers(agent=not is_blind),
            imported=ImportedAnswer(
                tool=TOOL_NAME,
                annotator=stated.annotation.annotator,
                annotation_id=str(stated.annotation.id),
                answered_at=format_iso_seconds(stated.answered_at) if stated.answered_at else None,
                answer_sha256=answer_sha256,
            ),
            second_opinion=f"several people answered the case in {TOOL_NAME}" if asks_second else "",
        )
        review = submitter.submit_review(
            loaded_case,
            submission,
            base_revision=opinions.get_newest_revision(case_id),
            require_savable=lambda _, now: require_not_taken(self._index, case_id, stated.reviewer, now),
        )
        parts = ", ".join(review.vouched) or "nothing"
        remarks = "".join(f"; {remark}" for remark in stated.answer.remarks)
        opinion = " as second opinion, because several people answered" if case_id.endswith(SECOND_SUFFIX) else ""
        return self._build_row(
            stated, "imported", f"{review.outcome}{opinion} by {stated.reviewer}, who vouches for {parts}{remarks}"
        )

    def _choose_case_id(self, opinions: CaseOpinions, stated: _GivenAnswer) -> str:
        """Choose the case that is answered: the base case or its second opinion."""
        case_id = stated.data.case_id
        requesting_review = opinions.review_requesting_second_opinion
        if requesting_review and requesting_review.reviewer != stated.reviewer:
            case_id += SECOND_SUFFIX
        reviews = opinions.numbered_reviews_by_case_id[case_id]
        is_own = bool(reviews) and reviews[-1][1].reviewer == stated.reviewer
        if opinions.get_status(case_id) == "completed" and not is_own:
            raise ReviewRefused(
                "another expert has already decided the case",
                code="IMPORT-DECIDED",
                remedy="To have it decided again, reopen the case, and import the file again.",
            )
        return case_id

    def _require_newer(self, stated: _GivenAnswer, newest: Review) -> None:
        """Raise ReviewRefused if the annotation is older than the newest review."""
        reviewed_at = (newest.imported and newest.imported.answered_at) or newest.submitted_at
        if stated.answered_at is None or stated.answered_at <= datetime.fromisoformat(reviewed_at):
            raise ReviewRefused(
                "the case was reviewed after this annotation was made",
                code="IMPORT-OLD",
                remedy="If the annotation is right all the same, submit it in Label Studio again, and export anew.",
            )

    def _build_row(self, stated: _GivenAnswer, status: ImportStatus, message: str) -> ImportedRow:
        return ImportedRow(stated.task, stated.data.case_id, stated.annotation.annotator, status, message)


def _sort_by_time(stated: _GivenAnswer) -> tuple[bool, datetime, str]:
    return stated.answered_at is not None, stated.answered_at or datetime.min.replace(tzinfo=UTC), stated.reviewer


def _build_submission(answer: LabelledAnswer, packet: SMEPacket) -> Submission:
    """Build the decision that an annotation states. ReviewRefused if it states none."""
    if answer.is_undeterminable and (answer.dominant_type or answer.segments):
        raise ReviewRefused(
            "the annotation says that nobody can tell, but also states a type",
            code="IMPORT-ANSWER",
            remedy="In Label Studio, remove either the type or “cannot tell”, and export again.",
        )
    if answer.is_undeterminable:
        return Submission(undeterminable=answer.notes, segment_flags=())
    stated: dict[ClassificationPart, object] = {"dominant_type": answer.dominant_type, "segments": answer.segments}
    vouched = tuple(part for part, value in stated.items() if value is not None)
    if not vouched:
        raise ReviewRefused(
            "the annotation states neither the file's type nor a document",
            code="IMPORT-ANSWER",
            remedy="Choose the file's type, or the type on each page where a document begins.",
        )
    agent = packet.classification
    ranges = [(segment.start_page, segment.end_page, segment.dominant_type) for segment in answer.segments or ()]
    agrees = (
        agent is not None
        and answer.dominant_type in (None, agent.dominant_type_overall)
        and (answer.segments is None or ranges == agent.typed_page_ranges)
    )
    quotes = choose_new_quotes(answer, agent)
    correction = ClassificationCorrection(
        dominant_type=None if agrees else answer.dominant_type,
        segments=None if agrees else answer.segments,
        quotes=quotes or None,
    )
    return Submission(
        agrees=True if agrees and not quotes else None,
        corrections=(correction,),
        correction_notes=answer.notes,
        vouched=vouched,
        segment_flags=tuple(list_flag_rows(answer)),
    )
