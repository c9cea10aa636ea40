"""Statements, templates with faults, and models that say what a test tells them, for the review loop."""

from __future__ import annotations

import asyncio
import importlib
import io
import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from builders import document
from PIL import Image
from servers.gemini import Call, Fault, GeminiServer

from evalkit.documents.bundle import DocumentBundle
from evalkit.documents.page_pictures import PageImage
from evalkit.llm.client import LanguageModel
from evalkit.llm.concurrency_limiter import AimdLimiter
from evalkit.llm.embedded import EmbeddedModel
from evalkit.llm.ledger import Journal, Ledger
from evalkit.llm.providers.gemini import GeminiProvider
from evalkit.statements.statement_template import StatementTemplate
from evalkit.statements.template_builder import build_draft_template
from evalkit.statements.template_review_loop import ReviewLoopConfig, TemplateReviewLoop, TemplateReviewResult

Plain = dict[str, Any]
PERSONAS = {
    "You are a Layout Geometry Reviewer": "layout_geometry",
    "You are a Semantic Financial Reviewer": "semantic_financial",
    "You are an Arbitration Reviewer": "arbitrator",
    "You write templates that tell a program": "builder",
}
NOTHING = json.dumps({"reasoning": "", "issues": [], "strengths": [], "weaknesses": [], "overall_quality_score": 1})
NO_TEMPLATE = json.dumps({"reasoning": "", "template": None})
NOTHING_RESOLVED = json.dumps({"reasoning": "", "resolutions": [], "final_decision": "approve", "recommendation": ""})
KEY = "AIza-planted-key"
ROWS = tuple((day, f"SHOP {day}", -day) for day in range(2, 14))


def statement(closing: str = "910.00", extra: str = "") -> DocumentBundle:
    """A statement of one page; its rows make 910.00 of 1,000.00."""
    rows = [f"01/{day:02}/2024 {text:<30} {amount}.00" for day, text, amount in ROWS]
    head = ["Example Bank", "Statement period: 01/01/2024 to 01/31/2024", "Beginning balance    1,000.00"]
    foot = [f"Ending balance    {closing}", "", "Date       Details                        Amount"]
    return document("\n".join([*head, *foot, *rows, *([extra] if extra else [])]))


def build_sound_template(bundle: DocumentBundle) -> StatementTemplate:
    return build_draft_template(bundle).template


BUNDLE = statement()
SOUND = build_sound_template(BUNDLE)


def excluded(plain: Plain) -> None:
    """Nothing of the table is in the box: both reviewers reject it."""
    plain["region"] = [{"pages": "any", "box": [0, 0.97, 1, 1]}]


def wrong_dates(plain: Plain) -> None:
    """The semantic reviewer rejects it, without anything critical."""
    plain["dates"]["formats"] = ["%d.%m.%Y"]


def inverted(plain: Plain) -> None:
    """The semantic reviewer finds something critical."""
    amounts = plain["amounts"]
    amounts["deposit"], amounts["withdrawal"] = amounts["withdrawal"], amounts["deposit"]
    amounts["unmarked"] = "withdrawal"


def break_template(bundle: DocumentBundle, *plant: Callable[[Plain], None]) -> StatementTemplate:
    plain = build_sound_template(bundle).model_dump(mode="json", by_alias=True)
    for one in plant:
        one(plain)
    return StatementTemplate.model_validate(plain)


def reviewer_answer(*issues: tuple[str, str, str], confidence: float = 0.9, **more: Any) -> str:
    """A reviewer's answer: severity, category, message of each issue."""
    told = [
        {"severity": severity, "category": category, "message": message, "page": 1, "expected": "", "actual": "",
         "location": "", "suggested_fix": "", "confidence": confidence, **more}
        for severity, category, message in issues
    ]  # fmt: skip
    return json.dumps(json.loads(NOTHING) | {"issues": told})


def now() -> str:
    return datetime.now(UTC).isoformat()


def picture() -> PageImage:
    buffer = io.BytesIO()
    Image.new("RGB", (8, 8), "white").save(buffer, "PNG")
    return PageImage(1, buffer.getvalue())


def role_of(prompt: str) -> str:
    """By the last persona: whatever the inputs say stands before it."""
    found = max((prompt.rfind(sentence), role) for sentence, role in PERSONAS.items())
    return found[1] if found[0] >= 0 else ""


def serve_answers(answers: Mapping[str, str | Fault | Callable[[Call], str | Fault]]) -> GeminiServer:
    """Answers by role; who is not told anything finds nothing."""
    importlib.import_module("google.genai")  # or the first call would, which takes longer than calls may

    def answer(call: Call) -> str | Fault:
        default = {"builder": NO_TEMPLATE, "arbitrator": NOTHING_RESOLVED}.get(call.role, NOTHING)
        this = answers.get(call.role, default)
        return this(call) if callable(this) else this

    return GeminiServer(answer, role_of=role_of)


def review_without_model(
    template: StatementTemplate, bundle: DocumentBundle, rules: ReviewLoopConfig | None = None
) -> TemplateReviewResult:
    """Reviewed by what is measured alone."""
    return asyncio.run(
        TemplateReviewLoop(lambda role: EmbeddedModel(), rules, clock=now).review_template(template, bundle)
    )


def review_with_model(
    server: GeminiServer,
    template: StatementTemplate,
    bundle: DocumentBundle,
    rules: ReviewLoopConfig | None = None,
    journal: Journal | None = None,
) -> TemplateReviewResult:
    """Reviewed by a model on this machine, on top of what is measured."""

    async def run() -> TemplateReviewResult:
        provider = GeminiProvider("m", base_url=server.url, api_key=KEY)
        model = LanguageModel(provider, Ledger(journal), AimdLimiter(16), max_first_wait=0.001, max_wait=0.01)
        try:
            loop = TemplateReviewLoop(lambda role: model, rules, clock=now)
            return await loop.review_template(template, bundle, page_images=[picture()])
        finally:
            await model.close()

    return asyncio.run(run())
