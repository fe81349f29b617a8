"""Options of the chain lattices: the section `options` of its config."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple, Protocol

from pydantic import Field, PositiveFloat, PositiveInt, model_validator

from swsdist.config.section import ChainOptions, IsPath, NameIn, Section
from swsdist.core.codes import families
from swsdist.core.codes import lattices as codes
from swsdist.core.errors import ConfigError
from swsdist.core.needs import LEAST, Needs
from swsdist.lattices.decoding import Decoding
from swsdist.lattices.packed import Recipe
from swsdist.lattices.recognition import Recognition
from swsdist.lattices.terms import TermReader, Terms
from swsdist.pipeline.chain import Context
from swsdist.registry.registries import LATTICE_FORMATS, RECOGNISERS
from swsdist.stages.inputs.corpus_documents import Row
from swsdist.stages.inputs.search_inputs import SearchInputs
from swsdist.stages.lattice_store import LatticeRow
from swsdist.store.lattice_shards import labels_of

#: Sources of the options that not all of them have.
_SOURCES = {
    "lattices": ("files", "recogniser"),
    "recogniser": ("recogniser",),
    "texts": ("recogniser",),
    "decoding": ("frames",),
    "recipe": ("files", "recogniser"),
    "store": ("frames",),
}


class LatticeInput(Section):
    """The lattices or transcripts of the documents."""

    path: IsPath | None = Field(
        None,
        description="file or folder of them, local or s3://; default: corpus.documents, and the documents are what they hold",
    )
    format: Annotated[str, NameIn(LATTICE_FORMATS)] | None = Field(
        None, description="their format, see swsdist help lattice-formats; default: detected, file by file"
    )
    words: IsPath | None = Field(None, description="Kaldi's words.txt: labels of the numbers in lattices")
    segments: IsPath | None = Field(
        None, description="Kaldi's segments: utterances are stretches of recordings (UTTERANCE RECORDING START END)"
    )
    frame_shift: PositiveFloat = Field(0.01, description="seconds per frame, of formats that count frames")
    subsampling: PositiveInt = Field(1, description="frames per frame of the lattice; 3 for Kaldi's chain models")
    tiers: tuple[str, ...] = Field((), description="tiers of ELAN and TextGrid files; default: all with intervals")

    @property
    def frame(self) -> float:
        """Seconds per frame of the lattice."""
        return self.frame_shift * self.subsampling


class LatticesOptions(ChainOptions):
    """The options of the chain lattices."""

    source: Literal["files", "recogniser", "frames"] = Field(
        "files",
        description="files: lattices or transcripts; recogniser: recordings, which it recognises; frames: posteriors of phones",
    )
    lattices: LatticeInput = Field(
        LatticeInput(),
        description="files: lattices or transcripts; recogniser: with a path, those of documents that are not recognised",
    )
    recogniser: Recognition = Field(
        Recognition(), description="recogniser: how documents and spoken queries become words"
    )
    texts: IsPath | None = Field(
        None,
        description="recogniser: what is said in the recordings, which gets the times of what is recognised: a table (.csv, "
        ".tsv) of recordings and texts, or a folder of TXT files or transcripts named after them",
    )
    decoding: Decoding = Field(
        Decoding(), description="frames: how they become lattices of documents and strings of queries"
    )
    recipe: Recipe = Field(Recipe(), description="files, recogniser: what is kept of lattices in the store")
    terms: Terms = Field(Terms(), description="how written terms, and the words of spoken ones, become labels")
    store: IsPath | None = Field(
        None,
        description="frames: folder of the store of lattices, local or s3://; default: `lattices` in the run folder",
    )

    @model_validator(mode="after")
    def _of_the_source(self) -> LatticesOptions:
        for key, sources in _SOURCES.items():
            if self.source not in sources and getattr(self, key) != type(self).model_fields[key].default:
                raise codes.OPTION_OF_OTHER_SOURCE.invalid(
                    key=f"options.{key}", source=self.source, sources=" or ".join(sources)
                )
        if self.texts is not None and RECOGNISERS[self.recogniser.name].holds != "words":
            raise (
                families.UNSUPPORTED.of(ConfigError)
                .saying(
                    "the recogniser {name} hears no words, so it gives a text no times",
                    "take one of words, such as whisper or pocketsphinx",
                )
                .invalid(name=self.recogniser.name)
            )
        return self

    @property
    def labels(self) -> Recipe:
        """How labels are compared and which are no words; for files and recordings also how lattices are pruned."""
        if self.source != "frames":
            return self.recipe
        return Recipe(spelling="exact", fillers=self.decoding.non_speech)

    @property
    def written(self) -> Terms:
        """The section `terms`, with the labels of the source."""
        return Terms.model_validate(self.terms_in(self.model_dump()))

    @property
    def needs(self) -> tuple[Needs, ...]:
        """Alternative resources of a worker that makes lattices, or labels of queries."""
        return self.recogniser.create().needs if self.source == "recogniser" else LEAST

    @classmethod
    def second_store(cls, options: Mapping[str, Any], run: str) -> str | None:
        """Folder of the lattices of frames."""
        return str(options.get("store") or f"{run}/lattices") if options.get("source") == "frames" else None

    @classmethod
    def terms_in(cls, options: Mapping[str, Any]) -> Mapping[str, object]:
        """The section `terms`, with the labels of the source."""
        terms, units = options.get("terms", {}), "words"
        if options.get("source") == "frames":
            units = "phones"
        elif options.get("source") == "recogniser":
            name = options.get("recogniser", {}).get("name", cls.model_fields["recogniser"].default.name)
            units = RECOGNISERS[name].holds
        return {**terms, "units": terms.get("units") or units}


#: A spoken example, and a reader of written ones, to rows of the method's queries and seconds; raises a DataError.
Labeller = Callable[[Row, TermReader], tuple[list[dict[str, Any]], float]]


class Documents(Protocol):
    """Documents of a task, and how they become lattices."""

    def warm(self, context: Context) -> None:
        """Load models and compiled kernels."""
        ...

    def rows(self, work: float, context: Context) -> Iterator[LatticeRow]:
        """The lattices of the documents; `work` is that of the task."""
        ...


class Speech(Protocol):
    """Conversion of spoken queries to labels."""

    def labeller(self, context: Context) -> Labeller:
        """A labeller of spoken queries on this worker."""
        ...


class Part(NamedTuple):
    """A task that makes lattices; see `swsdist.pipeline.chain.Inputs.task`."""

    key_parts: Sequence[Any]
    label: str
    work: float
    documents: Documents


class Source(ABC):
    """A source of lattices.

    Args:
        inputs: of the chain.
        options: of the chain.
        frames: inputs of the steps that make frames; None: there are none.

    Attributes:
        path: for messages: where its documents are.
    """

    def __init__(self, inputs: SearchInputs, options: LatticesOptions, frames: SearchInputs | None) -> None:
        self._inputs, self._config, self._options, self._frames = inputs, inputs.config, options, frames
        self.path = inputs.config.corpus.documents

    @abstractmethod
    def parts(self) -> Iterator[Part]:
        """The tasks that make the lattices of all documents, always in the same order."""

    def documents(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Documents that may be searched, and those that are rejected already; see `commit_lattices`."""
        table = self._inputs.corpus.documents
        return table.select([name for name in table.column_names if name != "listed"]).to_pylist(), []

    def queries(self) -> list[Row]:
        """Rows of QUERIES, without those that other steps make frames of; those with a path are spoken."""
        rows: list[Row] = self._inputs.corpus.queries.to_pylist()
        return rows

    def speech(self) -> tuple[Speech | None, Any]:
        """Conversion of spoken queries to labels, and all that the labels depend on besides the queries, as JSON."""
        return None, None

    def known(self) -> frozenset[str] | None:
        """Labels that documents can hold, or that those of the store hold; None if unknown or not needed."""
        store = self._inputs.store
        if not self._options.written.of_documents or store.manifest is None:
            return None
        return labels_of(store.folder, store.manifest.shards)
