//! Coverage points: places that code of a profiler passes, and how often the interleavings of a search pass them.

use super::thread::CurrentThread;

/// The number of times that each interleaving of a search passes a point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PointCoverage {
    /// Number of interleavings that pass it.
    pub interleavings: u64,
    /// The smallest number of times in an interleaving.
    pub least: u32,
    /// The largest number of times in an interleaving.
    pub most: u32,
}

/// The coverage points of a search. Interleavings that fail, or that the search gives up, do not count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchPoints {
    interleavings: u64,
    points: Vec<PointCoverage>,
}

impl SearchPoints {
    /// Creates the points of a number of interleavings: of each point, by its number, its coverage.
    #[must_use]
    pub const fn of(interleavings: u64, points: Vec<PointCoverage>) -> Self {
        Self { interleavings, points }
    }

    /// Returns the coverage of each point, by its number.
    #[must_use]
    pub fn all(&self) -> &[PointCoverage] {
        &self.points
    }

    /// Adds an interleaving with the number of times that it passes each point.
    pub fn add(&mut self, counts: &[u32]) {
        for point in 0..self.points.len().max(counts.len()) {
            let count = counts.get(point).copied().unwrap_or_default();
            let once = u64::from(count > 0);
            self.merge(point, PointCoverage { interleavings: once, least: count, most: count });
        }
        self.interleavings += 1;
    }

    /// Adds the interleavings of another search.
    pub(super) fn append(&mut self, other: &Self) {
        if other.interleavings == 0 {
            return;
        }
        for point in 0..self.points.len().max(other.points.len()) {
            self.merge(point, other.point(point as u32));
        }
        self.interleavings += other.interleavings;
    }

    fn merge(&mut self, point: usize, more: PointCoverage) {
        if self.points.len() <= point {
            self.points.resize(point + 1, PointCoverage::default());
        }
        let Some(known) = self.points.get_mut(point) else { return };
        known.least =
            if self.interleavings == 0 { more.least } else { known.least.min(more.least) };
        known.most = known.most.max(more.most);
        known.interleavings += more.interleavings;
    }

    /// Returns the number of interleavings.
    #[must_use]
    pub const fn interleavings(&self) -> u64 {
        self.interleavings
    }

    /// Returns the coverage of a point.
    #[must_use]
    pub fn point(&self, point: u32) -> PointCoverage {
        self.points.get(point as usize).copied().unwrap_or_default()
    }
}

/// Counts that an interleaving passes a point a number of times.
pub fn pass(counts: &mut Vec<u32>, point: u32, times: u32) {
    let point = point as usize;
    counts.resize(counts.len().max(point + 1), 0);
    if let Some(count) = counts.get_mut(point) {
        *count = count.saturating_add(times);
    }
}

impl CurrentThread<'_, '_> {
    /// Notes that the thread passes a point, for the report of the search.
    pub fn passes(&self, point: u32) {
        pass(&mut self.kernel.state.borrow_mut().points, point, 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A point that an interleaving does not pass is passed 0 times by it, whichever comes first.
    #[test]
    fn points_are_joined_in_any_order() {
        let all: [&[u32]; 4] = [&[], &[2], &[1, 3], &[0, 1]];
        let of = |counts: &[&[u32]]| {
            let mut points = SearchPoints::default();
            for counts in counts {
                points.add(counts);
            }
            points
        };
        let whole = of(&all);
        assert_eq!(whole.point(0), PointCoverage { interleavings: 2, least: 0, most: 2 });
        assert_eq!(whole.point(1), PointCoverage { interleavings: 2, least: 0, most: 3 });
        assert_eq!(of(&all[1..]).point(0).least, 0);
        assert_eq!(of(&all[1..3]).point(0), PointCoverage { interleavings: 2, least: 1, most: 2 });
        assert_eq!(whole.point(9), PointCoverage::default());
        for at in 0..=all.len() {
            let mut joined = of(&all[..at]);
            joined.append(&of(&all[at..]));
            assert_eq!(joined, whole, "{at}");
        }
    }
}
