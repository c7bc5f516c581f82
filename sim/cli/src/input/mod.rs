//! Inputs: files and embedded fixtures.

pub(crate) mod dump;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub(crate) mod live;
mod looks;
pub(crate) mod native;
pub(crate) mod program;

use crate::output;
use crate::render::code::Code;
use crate::render::error::CliError;
use clr_recording::Sequence;
use clr_recording::vectors::fuzz::FuzzFile;
use clr_recording::vectors::replay::VectorReplay;
use clr_recording::vectors::win64::VectorFile;
use clr_recording::vectors::{self, FormatError};
use clr_scenario::{MAX_TEXT, nearest};
use clr_unwind::PeImage;
use clr_unwind::compat::Rules;
use looks::looks_like;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// File extensions that are read in folders.
const TAKEN: [&str; 6] = [".vec.gz", ".bin.gz", PROGRAM, RECORDINGS[0], RECORDINGS[1], SEQUENCES];

/// File extension of recorded sequences of callbacks.
const SEQUENCES: &str = ".txt";

/// Folder of such sequences and of the texts of their programs, which have no checks of their own.
const FOLDER: &str = "sequences";

/// The name of standard input, from which a text is read.
const STDIN: &str = "-";

/// File extension of texts.
pub(crate) const PROGRAM: &str = ".kdl";

/// File extensions of recordings of walks: compressed and plain.
pub(crate) const RECORDINGS: [&str; 2] = [".walks.jsonl.gz", ".walks.jsonl"];

/// File extension of compressed files.
pub(crate) const COMPRESSED: &str = ".gz";

/// Magic bytes of a compressed file.
pub(crate) const GZIP: &[u8] = b"\x1F\x8B";

/// Limit of the bytes that are read of a file; larger than any image. Some files, such as devices,
/// never end.
const FILE_LIMIT: u64 = 512 << 20;

/// The place of an input: the file system or, if it has no such file, the embedded fixtures.
#[derive(Clone, Debug)]
enum Place {
    Disk(PathBuf),
    Embedded(&'static [u8]),
    /// A text that an editor holds, or that came from standard input.
    Text(Arc<str>),
}

/// An input that exists.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// The name given by the user, with forward slashes.
    pub(crate) name: String,
    place: Place,
}

/// The kind of a fixture file's content.
pub(crate) enum Kind {
    /// Unwind vectors of an image.
    Vectors,
    /// Fuzz records.
    Fuzz,
}

impl Source {
    fn disk(path: PathBuf) -> Self {
        Self { name: slashed(&path), place: Place::Disk(path) }
    }

    pub(crate) fn embedded(name: &str) -> Option<Self> {
        let bytes = clr_fixtures::get(name)?;
        Some(Self { name: name.to_owned(), place: Place::Embedded(bytes) })
    }

    /// Creates the input of a text that is in no file, or not as it is there.
    #[cfg(feature = "lsp")]
    pub(crate) fn of_text(name: &str, text: &str) -> Self {
        Self { name: name.to_owned(), place: Place::Text(text.into()) }
    }

    /// Finds the file at `path` or, if there is none, the embedded fixture of that name.
    pub(crate) fn find(path: &Path) -> Result<Self, CliError> {
        let name = slashed(path);
        if name == STDIN {
            return Self::standard_input();
        }
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => {
                Err(CliError::new(&name, "is a folder; name a file in it"))
            }
            Ok(_) => Ok(Self::disk(path.to_owned())),
            Err(error) => Self::embedded(&name).ok_or_else(|| unreadable(&name, &error)),
        }
    }

    /// Reads a text from standard input.
    fn standard_input() -> Result<Self, CliError> {
        let mut bytes = Vec::new();
        let read = io::stdin().take(MAX_TEXT as u64 + 1).read_to_end(&mut bytes);
        read.map_err(|error| unreadable("standard input", &error))?;
        let source = Self { name: format!("stdin{PROGRAM}"), place: Place::Text("".into()) };
        let text = source.text(bytes)?;
        Ok(Self { place: Place::Text(text.into()), ..source })
    }

    /// Returns the bytes as they are stored.
    pub(crate) fn read(&self) -> Result<Cow<'static, [u8]>, CliError> {
        match &self.place {
            Place::Disk(path) => match read_up_to(path, self.limit()) {
                Ok(Some(bytes)) => Ok(Cow::Owned(bytes)),
                Ok(None) => {
                    Err(self.error(format_args!("has more than {:#x} bytes", self.limit())))
                }
                Err(error) => Err(unreadable(&self.name, &error)),
            },
            Place::Embedded(bytes) => Ok(Cow::Borrowed(bytes)),
            Place::Text(text) => Ok(Cow::Owned(text.as_bytes().to_vec())),
        }
    }

    /// Opens the input if it is a file that can be read anywhere, and not embedded or a pipe. Returns its size in bytes, too.
    pub(crate) fn open_file(&self) -> Result<Option<(File, u64)>, CliError> {
        let Place::Disk(path) = &self.place else { return Ok(None) };
        let opened = File::open(path).and_then(|file| Ok((file.metadata()?, file)));
        let (metadata, file) = opened.map_err(|error| unreadable(&self.name, &error))?;
        Ok(metadata.is_file().then_some((file, metadata.len())))
    }

    /// Returns the limit of the bytes that are read.
    fn limit(&self) -> u64 {
        if self.is_program() { MAX_TEXT as u64 } else { FILE_LIMIT }
    }

    /// Returns true if the input is the file at a path, however it is named there.
    pub(crate) fn is_at(&self, path: &Path) -> bool {
        match &self.place {
            Place::Disk(own) => {
                let (own, path) = (fs::canonicalize(own), fs::canonicalize(path));
                own.is_ok_and(|own| path.is_ok_and(|path| path == own))
            }
            Place::Embedded(_) | Place::Text(_) => false,
        }
    }

    /// Replaces the content of the input by a text.
    pub(crate) fn write(&self, text: &str) -> Result<(), CliError> {
        let Place::Disk(path) = &self.place else {
            return Err(self.error("is no file, and cannot be written to"));
        };
        output::replace(path, text)
    }

    /// Returns true if the input is a text, by its name.
    pub(crate) fn is_program(&self) -> bool {
        self.name.ends_with(PROGRAM)
    }

    /// Returns true if the input is a recording of walks, by its name.
    pub(crate) fn is_recording(&self) -> bool {
        RECORDINGS.iter().any(|end| self.name.ends_with(end))
    }

    /// Returns true if the input is a recorded sequence of callbacks, by its content.
    pub(crate) fn is_sequence(&self) -> bool {
        let content = self.read();
        content.is_ok_and(|content| std::str::from_utf8(&content).is_ok_and(Sequence::is_one))
    }

    /// Returns the file of a name beside the input.
    pub(crate) fn beside(&self, name: &str) -> Option<Self> {
        match &self.place {
            Place::Disk(path) => {
                let path = path.with_file_name(name);
                path.is_file().then(|| Self::disk(path))
            }
            Place::Embedded(_) | Place::Text(_) => None,
        }
    }

    /// Reads the text of the input.
    pub(crate) fn read_text(&self) -> Result<String, CliError> {
        self.text(self.read()?.into_owned())
    }

    /// Reads the text of the input, and decompresses it if it is compressed.
    pub(crate) fn read_content(&self) -> Result<String, CliError> {
        let bytes = self.read()?;
        let is_compressed = bytes.starts_with(GZIP) || self.name.ends_with(RECORDINGS[0]);
        self.text(if is_compressed { self.decompress()? } else { bytes.into_owned() })
    }

    fn text(&self, mut bytes: Vec<u8>) -> Result<String, CliError> {
        if let Err(error) = str::from_utf8(&bytes)
            && error.error_len().is_none()
            && self.is_recording()
        {
            // The last line is cut within a letter.
            bytes.truncate(error.valid_up_to());
        }
        if let Some(kind) = looks_like(&bytes).filter(|_| self.is_program()) {
            return Err(self.error(format_args!("is no scenario: it looks like {kind}")));
        }
        String::from_utf8(bytes).map_err(|error| {
            let valid = error.utf8_error().valid_up_to();
            self.error(format_args!("is not UTF-8 text: the byte at {valid:#x} has no meaning"))
        })
    }

    fn decompress(&self) -> Result<Vec<u8>, CliError> {
        let bytes = self.read()?;
        if !bytes.starts_with(GZIP) && !self.name.ends_with(COMPRESSED) {
            let looks = looks_like(&bytes).map(|kind| format!("; it looks like {kind}"));
            let looks = looks.unwrap_or_default();
            return Err(self.error(format_args!(
                "is none of the files that are run: scenarios are called *{PROGRAM}, recordings \
                 *{} or *{}, and vectors are compressed{looks}",
                RECORDINGS[0], RECORDINGS[1]
            )));
        }
        vectors::decompress(&bytes, vectors::DECOMPRESSED_LIMIT).map_err(|error| self.error(error))
    }

    /// Returns the kind of the content and the decompressed content.
    pub(crate) fn read_fixture(&self) -> Result<(Kind, Vec<u8>), CliError> {
        if self.is_program() {
            return Err(self.error("is a program: see clrsim trace"));
        }
        let content = self.decompress()?;
        // Each reader checks its own signature: the one that finds it decides the kind.
        let is = |parsed: Option<FormatError>| parsed != Some(FormatError::BadMagic);
        let kind = if is(VectorFile::parse(&content).err()) {
            Kind::Vectors
        } else if is(FuzzFile::parse(&content).err()) {
            Kind::Fuzz
        } else {
            return Err(self.error(
                "is neither a file of unwind vectors (W64UVEC1) nor of fuzz records (W64UFUZ1)",
            ));
        };
        Ok((kind, content))
    }

    /// Finds the image of the vectors in this file.
    pub(crate) fn image(&self) -> Result<Self, CliError> {
        let candidates = self.image_names();
        for candidate in &candidates {
            match &self.place {
                Place::Disk(_) if fs::exists(candidate).unwrap_or(true) => {
                    return Ok(Self::disk(PathBuf::from(candidate)));
                }
                Place::Disk(_) | Place::Text(_) => {}
                Place::Embedded(_) => {
                    if let Some(image) = Self::embedded(&slashed(candidate)) {
                        return Ok(image);
                    }
                }
            }
        }
        let names: Vec<_> = candidates.iter().map(|path| slashed(path)).collect();
        Err(self.error(format_args!(
            "the image of these vectors is missing; looked for {}",
            names.join(" and ")
        )))
    }

    /// Returns the possible paths of the image: in the folder `img` beside the folder `vec`, or
    /// beside the vectors.
    fn image_names(&self) -> Vec<PathBuf> {
        let path = match &self.place {
            Place::Disk(path) => path.as_path(),
            Place::Embedded(_) | Place::Text(_) => Path::new(&self.name),
        };
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let stem = name.strip_suffix(".vec.gz").or(name.strip_suffix(".gz")).unwrap_or(&name);
        let image = format!("{stem}.dll");
        let folder = path.parent().unwrap_or(Path::new(""));
        let mut names = Vec::new();
        if folder.file_name().is_some_and(|name| name == "vec") {
            names.push(folder.with_file_name("img").join(&image));
        }
        names.push(folder.join(image));
        names
    }

    /// Creates an error of this input.
    pub(crate) fn error(&self, what: impl std::fmt::Display) -> CliError {
        CliError::new(&self.name, what)
    }

    /// Parses the bytes of this image.
    pub(crate) fn parse_image<'a>(&self, bytes: &'a [u8]) -> Result<PeImage<'a>, CliError> {
        PeImage::parse(bytes).map_err(|error| self.error(error))
    }
}

/// Parses `content` of `source` as vectors, reads their image and calls `act` with both.
pub(crate) fn with_vectors<T>(
    source: &Source,
    content: &[u8],
    rules: Rules,
    act: impl FnOnce(&VectorFile<'_>, &VectorReplay<'_>, &Code<'_, '_>) -> Result<T, CliError>,
) -> Result<T, CliError> {
    let file = VectorFile::parse(content).map_err(|error| source.error(error))?;
    let image = source.image()?;
    let bytes = image.read()?;
    let pe = image.parse_image(&bytes)?;
    let vectors_of = (file.image_base(), file.size_of_image());
    let (base, size) = (pe.preferred_base(), pe.size());
    if vectors_of != (base, size) {
        return Err(image.error(format_args!(
            "not the image that {} is of: base {base:#x} and size {size:#x}, not {:#x} and {:#x}",
            source.name, vectors_of.0, vectors_of.1
        )));
    }
    let replay =
        VectorReplay::new(&pe, file.image_base(), rules).map_err(|error| image.error(error))?;
    let code = Code { map: replay.code_map(), symbols: pe.symbols(), image: image.name };
    act(&file, &replay, &code)
}

/// Returns the content of a file if it has at most `limit` bytes.
pub(crate) fn read_up_to(path: &Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= limit).then_some(bytes))
}

/// Returns all fixtures that `paths` name, or an error if one does not exist.
pub(crate) fn sources(paths: &[PathBuf]) -> Result<Vec<Source>, CliError> {
    let Sources { found, missing } = sources_there(paths, None)?;
    missing.into_iter().next().map_or(Ok(found), Err)
}

/// The inputs that paths name.
pub(crate) struct Sources {
    pub(crate) found: Vec<Source>,
    /// Errors of paths that do not exist.
    pub(crate) missing: Vec<CliError>,
}

/// Returns all fixtures that `paths` name, those of a folder ascending by name; without paths, the
/// embedded ones. With a filter, only fixtures whose names contain it.
pub(crate) fn sources_there(paths: &[PathBuf], filter: Option<&str>) -> Result<Sources, CliError> {
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    if paths.is_empty() {
        let names = clr_fixtures::all().iter().map(|fixture| fixture.name);
        let names = names.filter(|name| is_taken(name));
        let is_other = |source: &Source| source.name.ends_with(SEQUENCES) && !source.is_sequence();
        found.extend(names.filter_map(Source::embedded).filter(|source| !is_other(source)));
    }
    for path in paths {
        let there =
            if path.is_dir() { inside(path) } else { Source::find(path).map(|it| vec![it]) };
        match there {
            Ok(sources) => found.extend(sources),
            Err(error) => missing.push(error),
        }
    }
    once(&mut found);
    if let Some(filter) = filter {
        found.retain(|source| source.name.contains(filter));
        if found.is_empty() && missing.is_empty() {
            return Err(CliError::new(
                &format!("--filter {filter}"),
                "no file has this in its path; without the filter all are replayed",
            ));
        }
    }
    Ok(Sources { found, missing })
}

/// Removes inputs that are there already, whatever they are called.
fn once(sources: &mut Vec<Source>) {
    let mut seen = BTreeSet::new();
    sources.retain(|source| match &source.place {
        Place::Disk(path) => seen.insert(fs::canonicalize(path).unwrap_or_else(|_| path.clone())),
        Place::Embedded(_) => seen.insert(PathBuf::from(&source.name)),
        Place::Text(_) => true,
    });
}

/// Returns the fixtures in `folder`, ascending by name.
fn inside(folder: &Path) -> Result<Vec<Source>, CliError> {
    let mut inside = Vec::new();
    collect(folder, &mut inside)?;
    if inside.is_empty() {
        return Err(CliError::new(
            &slashed(folder),
            "no fixtures in this folder: they are called *.vec.gz, *.bin.gz, *.kdl, \
             *.walks.jsonl.gz or *.walks.jsonl",
        ));
    }
    inside.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(inside)
}

/// Collects the fixtures in `folder` and below. Links to folders are not followed: they may lead
/// back.
fn collect(folder: &Path, into: &mut Vec<Source>) -> Result<(), CliError> {
    let name = slashed(folder);
    for entry in fs::read_dir(folder).map_err(|error| unreadable(&name, &error))? {
        let entry = entry.map_err(|error| unreadable(&name, &error))?;
        let path = entry.path();
        let file_type = entry.file_type().map_err(|error| unreadable(&slashed(&path), &error))?;
        if file_type.is_dir() {
            collect(&path, into)?;
        } else if is_taken(&slashed(&path)) && !path.is_dir() {
            let source = Source::disk(path);
            if !source.name.ends_with(SEQUENCES) || source.is_sequence() {
                into.push(source);
            }
        }
    }
    Ok(())
}

fn is_taken(name: &str) -> bool {
    let mut folders = name.rsplit('/').skip(1);
    let is_program = name.ends_with(PROGRAM) && folders.next() == Some(FOLDER);
    !is_program && TAKEN.iter().any(|end| name.ends_with(end))
}

/// Returns the path with forward slashes.
pub(crate) fn slashed(path: &Path) -> String {
    let name = path.to_string_lossy();
    if std::path::MAIN_SEPARATOR == '/' { name.into_owned() } else { name.replace('\\', "/") }
}

fn unreadable(name: &str, error: &io::Error) -> CliError {
    match error.kind() {
        ErrorKind::NotFound => CliError::new(name, not_there(name)).with_code("not-found"),
        // The kind has the same words on every system.
        kind => CliError::new(name, format_args!("cannot be read: {kind}")),
    }
}

/// Returns the part of a name behind its folders.
pub(crate) fn end_of(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// Returns the message for a name of neither a file nor an embedded fixture.
fn not_there(name: &str) -> String {
    let inside = name.strip_prefix("fixtures/").unwrap_or(name).trim_end_matches('/');
    let is_in = |fixture: &str| fixture.strip_prefix(inside).is_some_and(|it| it.starts_with('/'));
    if clr_fixtures::all().iter().any(|fixture| is_in(fixture.name)) {
        return format!(
            "no such file; it is a folder of embedded fixtures, all of which are run by \
             clrsim run --filter {inside}/"
        );
    }
    let names: Vec<_> = clr_fixtures::all().iter().map(|fixture| fixture.name).collect();
    let ends: Vec<_> = names.iter().map(|name| end_of(name)).collect();
    let with_end = format!("{}{PROGRAM}", end_of(inside));
    let begins = |name: &&str| {
        let end = end_of(name);
        end == with_end
            || end.strip_prefix(end_of(inside)).is_some_and(|rest| rest.starts_with('-'))
    };
    let by_begin = names.iter().copied().find(|name| begins(name));
    let near = by_begin.or_else(|| nearest(inside, &names)).or_else(|| {
        let near = nearest(end_of(inside), &ends)?;
        names.iter().copied().find(|name| end_of(name) == near)
    });
    if let Some(near) = near {
        return format!("no such file, and no embedded fixture of that name; did you mean {near}?");
    }
    let known = if name.ends_with(PROGRAM) {
        "clrsim list prints the names of the embedded scenarios"
    } else {
        "two are win64/vec/gcc_O2.vec.gz and win64/img/gcc_O2.dll"
    };
    format!("no such file, and no embedded fixture of that name ({known})")
}
