//! Files and embedded fixtures: which are meant, and what is in them.

pub(crate) mod program;

use crate::render::code::Code;
use crate::render::error::CliError;
use clr_recording::vectors::fuzz::FuzzFile;
use clr_recording::vectors::replay::VectorReplay;
use clr_recording::vectors::win64::VectorFile;
use clr_recording::vectors::{self, FormatError};
use clr_walker::image::pe::PeImage;
use clr_walker::unwind::Rules;
use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};

/// The names of files that are taken from folders, by how they end.
const TAKEN: [&str; 5] = [".vec.gz", ".bin.gz", PROGRAM, RECORDINGS[0], RECORDINGS[1]];

/// How the names of texts end.
pub(crate) const PROGRAM: &str = ".kdl";

/// How the names of recordings of walks end: compressed, and not.
pub(crate) const RECORDINGS: [&str; 2] = [".walks.jsonl.gz", ".walks.jsonl"];

/// The most bytes that are read of a file: more than any image has. Some files never end.
const FILE_LIMIT: u64 = 512 << 20;

/// What a path leads to in the file system, if not there to an embedded fixture.
#[derive(Clone, Debug)]
enum Place {
    Disk(PathBuf),
    Embedded(&'static [u8]),
}

/// An input that is there.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// As the user knows it, with forward slashes.
    pub(crate) name: String,
    place: Place,
}

/// The content of a fixture file, decompressed.
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

    fn embedded(name: &str) -> Option<Self> {
        let bytes = clr_fixtures::get(name)?;
        Some(Self { name: name.to_owned(), place: Place::Embedded(bytes) })
    }

    /// The file at `path`, or the embedded fixture of that name.
    pub(crate) fn find(path: &Path) -> Result<Self, CliError> {
        let name = slashed(path);
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => {
                Err(CliError::new(&name, "is a folder; name a file in it"))
            }
            Ok(_) => Ok(Self::disk(path.to_owned())),
            Err(error) => Self::embedded(&name).ok_or_else(|| unreadable(&name, &error)),
        }
    }

    /// Its bytes as they are stored.
    pub(crate) fn read(&self) -> Result<Cow<'static, [u8]>, CliError> {
        match &self.place {
            Place::Disk(path) => match read_up_to(path, FILE_LIMIT) {
                Ok(Some(bytes)) => Ok(Cow::Owned(bytes)),
                Ok(None) => Err(self.error(format_args!("has more than {FILE_LIMIT:#x} bytes"))),
                Err(error) => Err(unreadable(&self.name, &error)),
            },
            Place::Embedded(bytes) => Ok(Cow::Borrowed(bytes)),
        }
    }

    /// Writes a text in its place.
    pub(crate) fn write(&self, text: &str) -> Result<(), CliError> {
        let Place::Disk(path) = &self.place else {
            return Err(self.error("is embedded, and cannot be written to"));
        };
        fs::write(path, text).map_err(|error| unwritable(&self.name, &error))
    }

    /// Whether it is a program.
    pub(crate) fn is_program(&self) -> bool {
        self.name.ends_with(PROGRAM)
    }

    /// Whether it is a recording of walks.
    pub(crate) fn is_recording(&self) -> bool {
        RECORDINGS.iter().any(|end| self.name.ends_with(end))
    }

    /// Its text.
    pub(crate) fn read_text(&self) -> Result<String, CliError> {
        self.text(self.read()?.into_owned())
    }

    /// Its text, which may be compressed: its name tells.
    pub(crate) fn read_recording(&self) -> Result<String, CliError> {
        if self.name.ends_with(RECORDINGS[0]) {
            self.text(self.decompress()?)
        } else {
            self.read_text()
        }
    }

    fn text(&self, bytes: Vec<u8>) -> Result<String, CliError> {
        String::from_utf8(bytes).map_err(|error| {
            let valid = error.utf8_error().valid_up_to();
            self.error(format_args!("is not UTF-8 text: the byte at {valid:#x} has no meaning"))
        })
    }

    fn decompress(&self) -> Result<Vec<u8>, CliError> {
        vectors::decompress(&self.read()?, vectors::DECOMPRESSED_LIMIT)
            .map_err(|error| self.error(error))
    }

    /// Its decompressed content, and what that is.
    pub(crate) fn read_fixture(&self) -> Result<(Kind, Vec<u8>), CliError> {
        if self.is_program() {
            return Err(self.error("is a program: see clrsim trace"));
        }
        let content = self.decompress()?;
        // The signatures belong to the readers: whichever does not miss its own is meant.
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

    /// The image that the vectors in this file are of.
    pub(crate) fn image(&self) -> Result<Self, CliError> {
        let candidates = self.image_names();
        for candidate in &candidates {
            match &self.place {
                Place::Disk(_) if fs::exists(candidate).unwrap_or(true) => {
                    return Ok(Self::disk(PathBuf::from(candidate)));
                }
                Place::Disk(_) => {}
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

    /// Where the image may be: in the folder `img` beside the folder `vec`, or beside the vectors.
    fn image_names(&self) -> Vec<PathBuf> {
        let path = match &self.place {
            Place::Disk(path) => path.as_path(),
            Place::Embedded(_) => Path::new(&self.name),
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

    /// CliError with this input.
    pub(crate) fn error(&self, what: impl std::fmt::Display) -> CliError {
        CliError::new(&self.name, what)
    }

    /// Parses `bytes`, which are those of this image.
    pub(crate) fn parse_image<'a>(&self, bytes: &'a [u8]) -> Result<PeImage<'a>, CliError> {
        PeImage::parse(bytes).map_err(|error| self.error(error))
    }
}

/// Calls `act` with the vectors in `content`, which is that of `source`, and with their image.
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

/// The content of a file if it has at most `limit` bytes.
pub(crate) fn read_up_to(path: &Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= limit).then_some(bytes))
}

/// All fixtures that `paths` name; trouble if some of these are not there.
pub(crate) fn sources(paths: &[PathBuf]) -> Result<Vec<Source>, CliError> {
    let Sources { found, missing } = sources_there(paths, None)?;
    missing.into_iter().next().map_or(Ok(found), Err)
}

/// What paths lead to.
pub(crate) struct Sources {
    pub(crate) found: Vec<Source>,
    /// What is wrong with the paths that lead nowhere.
    pub(crate) missing: Vec<CliError>,
}

/// All fixtures that `paths` name, those of a folder ascending by name; the embedded ones if there
/// are no paths. With a filter, only those whose names contain it.
pub(crate) fn sources_there(paths: &[PathBuf], filter: Option<&str>) -> Result<Sources, CliError> {
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    if paths.is_empty() {
        let names = clr_fixtures::all().iter().map(|fixture| fixture.name);
        let names = names.filter(|name| is_taken(name));
        found.extend(names.filter_map(Source::embedded));
    }
    for path in paths {
        let there =
            if path.is_dir() { inside(path) } else { Source::find(path).map(|it| vec![it]) };
        match there {
            Ok(sources) => found.extend(sources),
            Err(error) => missing.push(error),
        }
    }
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

/// The fixtures in `folder`, ascending by name.
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

/// The fixtures in `folder` and below. Links to folders are not followed: they may lead back.
fn collect(folder: &Path, into: &mut Vec<Source>) -> Result<(), CliError> {
    let name = slashed(folder);
    for entry in fs::read_dir(folder).map_err(|error| unreadable(&name, &error))? {
        let entry = entry.map_err(|error| unreadable(&name, &error))?;
        let path = entry.path();
        let file_type = entry.file_type().map_err(|error| unreadable(&slashed(&path), &error))?;
        if file_type.is_dir() {
            collect(&path, into)?;
        } else if is_taken(&entry.file_name().to_string_lossy()) && !path.is_dir() {
            into.push(Source::disk(path));
        }
    }
    Ok(())
}

fn is_taken(name: &str) -> bool {
    TAKEN.iter().any(|end| name.ends_with(end))
}

/// Writes a text to a file that is not there yet.
pub(crate) fn write_new(path: &Path, text: &str) -> Result<(), CliError> {
    let name = slashed(path);
    let file = File::create_new(path).and_then(|mut file| file.write_all(text.as_bytes()));
    file.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => CliError::new(&name, "is there already"),
        _ => unwritable(&name, &error),
    })
}

/// Whether [`write_new`] can make a file: said early, before somebody waits for what is in it.
pub(crate) fn can_be_made(path: &Path) -> Result<(), CliError> {
    if fs::symlink_metadata(path).is_ok() {
        return Err(CliError::new(&slashed(path), "is there already"));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    match folder.filter(|folder| !folder.is_dir()) {
        None => Ok(()),
        Some(folder) => {
            let what = format!("cannot be written: there is no folder {}", slashed(folder));
            Err(CliError::new(&slashed(path), what))
        }
    }
}

/// Writes a text to a file, in place of what is there.
pub(crate) fn write_over(path: &Path, text: &str) -> Result<(), CliError> {
    fs::write(path, text).map_err(|error| unwritable(&slashed(path), &error))
}

/// The path with forward slashes.
pub(crate) fn slashed(path: &Path) -> String {
    let name = path.to_string_lossy();
    if std::path::MAIN_SEPARATOR == '/' { name.into_owned() } else { name.replace('\\', "/") }
}

fn unreadable(name: &str, error: &io::Error) -> CliError {
    match error.kind() {
        ErrorKind::NotFound => CliError::new(name, not_there(name)),
        // The kind is in the same words on every system.
        kind => CliError::new(name, format_args!("cannot be read: {kind}")),
    }
}

/// What can be said of a name that is neither that of a file nor of an embedded fixture.
fn not_there(name: &str) -> String {
    let inside = name.strip_prefix("fixtures/").unwrap_or(name).trim_end_matches('/');
    let is_in = |fixture: &str| fixture.strip_prefix(inside).is_some_and(|it| it.starts_with('/'));
    if clr_fixtures::all().iter().any(|fixture| is_in(fixture.name)) {
        return format!(
            "no such file; it is a folder of embedded fixtures, all of which are run by \
             clrsim run --filter {inside}/"
        );
    }
    let known = if name.ends_with(PROGRAM) {
        "clrsim list prints the names of the embedded texts"
    } else {
        "two are win64/vec/gcc_O2.vec.gz and win64/img/gcc_O2.dll"
    };
    format!("no such file, and no embedded fixture of that name ({known})")
}

fn unwritable(name: &str, error: &io::Error) -> CliError {
    CliError::new(name, format_args!("cannot be written: {}", error.kind()))
}
