//! Vectors of tools as int8, and the file that keeps them between runs.

use std::collections::{HashMap, HashSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tgp_contract::canonical;

/// Vectors that are kept. Up to this many tools a plain scan is fast enough; the file is then some 45 MB.
pub const MAX_VECTORS: usize = 100_000;
/// Largest file that is read: a full one of the longest vectors.
const MAX_FILE_BYTES: u64 = 512 * 1024 * 1024;
/// Unsaved vectors that an insert leaves: one for this many saved ones.
const LAG_SHARE: usize = 256;
const MAGIC: &[u8] = b"TGPVEC01";
const KEY_BYTES: usize = 64;

/// A direction as int8; `scale` gives it back its length of one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PackedVector {
    pub(crate) scale: f32,
    pub(crate) values: Box<[u8]>,
}

impl PackedVector {
    /// Packs a vector of any length. Nothing when it has no direction.
    pub(crate) fn new(vector: &[f32]) -> Option<Self> {
        let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
        let largest = vector.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
        if !length.is_finite() || length <= 0.0 || largest <= 0.0 {
            return None;
        }
        #[expect(clippy::cast_possible_truncation, reason = "at most 127")]
        let values =
            vector.iter().map(|value| ((value / largest * 127.0).round() as i8).cast_unsigned()).collect();
        Some(Self { scale: largest / 127.0 / length, values })
    }
}

/// A question's vector, finer than those of the tools: 10 bits, so that sums over 4096 dimensions fit an i32.
pub(crate) struct QueryVector {
    values: Vec<i16>,
    scale: f32,
}

impl QueryVector {
    const LIMIT: f32 = 1023.0;

    pub(crate) fn new(vector: &[f32]) -> Option<Self> {
        let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
        let largest = vector.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
        if !length.is_finite() || length <= 0.0 || largest <= 0.0 {
            return None;
        }
        #[expect(clippy::cast_possible_truncation, reason = "at most 1023")]
        let values = vector.iter().map(|value| (value / largest * Self::LIMIT).round() as i16).collect();
        Some(Self { values, scale: largest / Self::LIMIT / length })
    }

    pub(crate) fn dimensions(&self) -> usize {
        self.values.len()
    }

    /// Cosine with a packed vector.
    pub(crate) fn cosine(&self, values: &[u8], scale: f32) -> f32 {
        let sum = self.values.iter().zip(values).fold(0_i32, |sum, (left, right)| {
            sum.wrapping_add(i32::from(*left).wrapping_mul(i32::from(right.cast_signed())))
        });
        #[expect(clippy::cast_precision_loss, reason = "seven digits of a cosine are enough")]
        let sum = sum as f32;
        (sum * self.scale * scale).clamp(-1.0, 1.0)
    }
}

/// Vectors by content key. A file that is damaged, of another format or missing is as good as empty: it is a cache.
#[derive(Debug)]
pub(crate) struct VectorStore {
    path: Option<PathBuf>,
    held: Mutex<StoredVector>,
}

#[derive(Debug, Default)]
struct StoredVector {
    vectors: HashMap<String, PackedVector>,
    unsaved: usize,
}

impl VectorStore {
    /// Opens `vectors-<fingerprint>.bin` in `directory`, or keeps everything in memory.
    pub(crate) fn open(directory: Option<&Path>, fingerprint: &str) -> Self {
        let path = directory.map(|directory| directory.join(format!("vectors-{fingerprint}.bin")));
        let vectors = path.as_deref().and_then(read).unwrap_or_default();
        Self { path, held: Mutex::new(StoredVector { vectors, unsaved: 0 }) }
    }

    pub(crate) fn get(&self, key: &str) -> Option<PackedVector> {
        self.held().vectors.get(key).cloned()
    }

    pub(crate) fn put(&self, key: String, vector: PackedVector) {
        let mut held = self.held();
        if held.vectors.len() < MAX_VECTORS || held.vectors.contains_key(&key) {
            held.vectors.insert(key, vector);
            held.unsaved += 1;
        }
    }

    /// Whether so much is new that a kill now would cost real work. The step grows with the store, so that the
    /// bytes written stay in proportion.
    pub(crate) fn wants_saving(&self) -> bool {
        let held = self.held();
        held.unsaved >= 64.max(held.vectors.len() / 8)
    }

    /// Whether a single new tool is worth a rewrite of the file. With many it waits for a few more: what a kill loses is
    /// embedded again at the next start, in less time than every rewrite would have taken together.
    pub(crate) fn is_behind(&self) -> bool {
        let held = self.held();
        held.unsaved > held.vectors.len() / LAG_SHARE
    }

    /// Writes what is new beside the file and renames it, with what another process wrote meanwhile. Vectors of
    /// other than the `used` texts go when there are too many.
    pub(crate) fn save(&self, used: &HashSet<String>) -> std::io::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        let mut held = self.held();
        if held.unsaved == 0 {
            return Ok(());
        }
        for (key, vector) in read(path).unwrap_or_default() {
            held.vectors.entry(key).or_insert(vector);
        }
        let over = held.vectors.len().saturating_sub(MAX_VECTORS);
        let mut unused: Vec<String> =
            held.vectors.keys().filter(|key| !used.contains(*key)).cloned().collect();
        unused.sort();
        for key in unused.into_iter().take(over) {
            held.vectors.remove(&key);
        }
        write(path, &held.vectors)?;
        held.unsaved = 0;
        Ok(())
    }

    fn held(&self) -> MutexGuard<'_, StoredVector> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Header (magic, dimensions, count), records (key, scale, values), and the SHA-256 of all that as hex.
fn write(path: &Path, vectors: &HashMap<String, PackedVector>) -> std::io::Result<()> {
    let dimensions = vectors.values().next().map_or(0, |vector| vector.values.len());
    let mut sorted: Vec<(&String, &PackedVector)> = vectors
        .iter()
        .filter(|(key, vector)| key.len() == KEY_BYTES && vector.values.len() == dimensions)
        .collect();
    sorted.sort_by_key(|(key, _)| key.as_str());
    let mut bytes = MAGIC.to_vec();
    for number in [dimensions, sorted.len()] {
        bytes.extend(u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes());
    }
    for (key, vector) in sorted {
        bytes.extend(key.as_bytes());
        bytes.extend(vector.scale.to_le_bytes());
        bytes.extend(&vector.values);
    }
    let checksum = canonical::sha256_hex(&bytes);
    bytes.extend(checksum.as_bytes());
    let directory = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(directory)?;
    // A reader sees the old file or the new one; of two writers the last wins, and both wrote whole files.
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    file.write_all(&bytes)?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

fn read(path: &Path) -> Option<HashMap<String, PackedVector>> {
    if std::fs::metadata(path).ok()?.len() > MAX_FILE_BYTES {
        return None;
    }
    let bytes = std::fs::read(path).ok()?;
    let (body, checksum) = bytes.split_at_checked(bytes.len().checked_sub(KEY_BYTES)?)?;
    if canonical::sha256_hex(body).as_bytes() != checksum {
        return None;
    }
    let rest = body.strip_prefix(MAGIC)?;
    let (dimensions, rest) = rest.split_first_chunk::<4>()?;
    let (count, records) = rest.split_first_chunk::<4>()?;
    let dimensions = usize::try_from(u32::from_le_bytes(*dimensions)).ok()?;
    let count = usize::try_from(u32::from_le_bytes(*count)).ok()?;
    let size = dimensions.checked_add(KEY_BYTES + 4)?;
    if dimensions > crate::MAX_DIMENSIONS
        || count > MAX_VECTORS
        || records.len() != count.checked_mul(size)?
    {
        return None;
    }
    records.chunks_exact(size).map(record).collect()
}

fn record(bytes: &[u8]) -> Option<(String, PackedVector)> {
    let (key, rest) = bytes.split_at_checked(KEY_BYTES)?;
    let (scale, values) = rest.split_first_chunk::<4>()?;
    let key = std::str::from_utf8(key).ok()?.to_owned();
    let scale = Some(f32::from_le_bytes(*scale)).filter(|scale| scale.is_finite())?;
    Some((key, PackedVector { scale, values: values.into() }))
}
