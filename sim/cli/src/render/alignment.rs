//! Alignment of two lists.

/// Pairs as many items of two lists by `same` as possible, in order. Between two pairs, items
/// without a partner are put side by side, and alone if one list has more of them.
///
/// `same` compares expectations with results: it need not be an equivalence, and of equal
/// alignments the one with the earliest pairs is wanted. Diff libraries pair common ends first.
pub(crate) fn aligned(
    left: usize,
    right: usize,
    same: impl Fn(usize, usize) -> bool,
) -> Vec<(Option<usize>, Option<usize>)> {
    let mut rows = Vec::new();
    let (mut l, mut r) = (0, 0);
    for (pair_l, pair_r) in pairs(left, right, same).into_iter().chain([(left, right)]) {
        while l < pair_l || r < pair_r {
            rows.push(((l < pair_l).then_some(l), (r < pair_r).then_some(r)));
            l += usize::from(l < pair_l);
            r += usize::from(r < pair_r);
        }
        if pair_l < left || pair_r < right {
            rows.push((Some(l), Some(r)));
            (l, r) = (l + 1, r + 1);
        }
    }
    rows
}

/// Limit of the comparisons: longer lists are paired by their indices.
const MOST: usize = 1 << 22;

/// Returns the pairs of a longest common subsequence.
fn pairs(left: usize, right: usize, same: impl Fn(usize, usize) -> bool) -> Vec<(usize, usize)> {
    if left.saturating_mul(right) > MOST {
        return (0..left.min(right)).filter(|at| same(*at, *at)).map(|at| (at, at)).collect();
    }
    let width = right + 1;
    // Number of pairs from each place on.
    let mut counts = vec![0_usize; (left + 1) * width];
    let at = |l: usize, r: usize| l * width + r;
    for l in (0..left).rev() {
        for r in (0..right).rev() {
            counts[at(l, r)] = if same(l, r) {
                counts[at(l + 1, r + 1)] + 1
            } else {
                counts[at(l + 1, r)].max(counts[at(l, r + 1)])
            };
        }
    }
    let (mut l, mut r) = (0, 0);
    let mut pairs = Vec::new();
    while l < left && r < right {
        if same(l, r) {
            pairs.push((l, r));
            (l, r) = (l + 1, r + 1);
        } else if counts[at(l + 1, r)] >= counts[at(l, r + 1)] {
            l += 1;
        } else {
            r += 1;
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::aligned;

    fn text(left: &str, right: &str) -> String {
        let (l, r): (Vec<_>, Vec<_>) = (left.chars().collect(), right.chars().collect());
        let rows = aligned(l.len(), r.len(), |a, b| l[a] == r[b]);
        let side = |list: &[char], at: Option<usize>| at.map_or('-', |at| list[at]);
        let rows = rows.iter().map(|(a, b)| [side(&l, *a), side(&r, *b)]);
        rows.map(String::from_iter).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn equal_items_are_side_by_side() {
        assert_eq!(text("", ""), "");
        assert_eq!(text("abc", "abc"), "aa bb cc");
        assert_eq!(text("abc", "bc"), "a- bb cc");
        assert_eq!(text("ab", "xab"), "-x aa bb");
        assert_eq!(text("axb", "ayzb"), "aa xy -z bb");
        assert_eq!(text("abc", ""), "a- b- c-");
        assert_eq!(text("ab", "ba"), "a- bb -a");
    }
}
