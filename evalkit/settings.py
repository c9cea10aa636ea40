"""The one Settings: the only reader of the environment and of ``evalkit.toml``.

Precedence: what is passed in > ``EVALKIT_NAME`` or ``EVALKIT_SECTION__NAME`` > ``./evalkit.toml`` > default.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from evalkit.errors import UsageError


class Models(BaseModel):
    """``[models]``: which model answers."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    default: Literal["embedded"] = "embedded"


class Settings(BaseSettings):
    """Everything that can be set. Names are those of ``evalkit.toml``."""

    model_config = SettingsConfigDict(
        frozen=True, extra="forbid", env_prefix="EVALKIT_", env_nested_delimiter="__", toml_file="evalkit.toml"
    )

    output: str = Field("output", min_length=1)
    """The folder that everything is written to."""
    workers: int = Field(0, ge=0, le=256)
    """Processes that read PDFs; 0: one per core."""
    read_seconds: int = Field(300, ge=1, le=86_400)
    """Seconds that reading one PDF may take, or from one recognised page to the next."""
    ocr: Literal["auto", "tesseract", "rapidocr", "none"] = "auto"
    """What recognises pages that are pictures; ``auto``: tesseract, else RapidOCR, whichever is installed."""
    ocr_seconds: int = Field(30, ge=1, le=3_600)
    """Seconds that recognising one page once may take."""
    models: Models = Models()
    lossless_repair: bool = False
    """Apply repairs of BLOCKERs that lose nothing (a wrong segment count) before the arbiter counts."""
    on_agent_failure: Literal["escalate", "ignore"] = "escalate"
    """``ignore``: a verifier that could not answer raises no issue. Only for comparing with older systems."""
    audit_rate_start: float = Field(0.20, ge=0, le=1)
    """Share of accepted documents drawn for audit until ``audit_target`` audits are done."""
    audit_rate: float = Field(0.05, ge=0, le=1)
    """Share drawn after that."""
    audit_target: int = Field(300, ge=0)
    audit_seed: str = "evalkit"
    """Another seed draws other documents."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - one file is enough
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - the signature is pydantic's
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments, then the environment, then the file."""
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls)

    @classmethod
    def load(cls, **given: Any) -> Settings:
        """The settings in force; arguments that are None are not given. UsageError naming the one that is wrong."""
        try:
            return cls(**{name: value for name, value in given.items() if value is not None})
        except ValidationError as error:
            first = error.errors()[0]
            raise UsageError(
                f"setting {'.'.join(str(part) for part in first['loc'])}: {first['msg']}",
                code="SETTINGS",
                remedy="Correct the option, the EVALKIT_… variable or the line in evalkit.toml.",
            ) from error
        except ValueError as error:  # TOML that cannot be parsed, JSON in a variable that cannot be parsed
            raise UsageError(
                f"evalkit.toml or an EVALKIT_… variable cannot be read: {error}",
                code="SETTINGS",
                remedy="Correct it; the README lists every setting.",
            ) from error
