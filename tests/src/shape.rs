//! The shape of a walk: the order of its callbacks.

/// Formats the order of callbacks: a run of managed ones is an `m`, a marker an `N`. Three or more
/// pairs of these are `(mN)*`; no callback is `none`.
#[must_use]
pub fn shape(are_managed: impl IntoIterator<Item = bool>) -> String {
    let letters = are_managed.into_iter().map(|is_managed| if is_managed { 'm' } else { 'N' });
    let mut shape: Vec<_> = letters.collect();
    shape.dedup_by(|next, before| (*next, *before) == ('m', 'm'));
    let shape: String = shape.into_iter().collect();
    if shape.is_empty() {
        return "none".to_owned();
    }
    let (before, pairs) = shape.strip_prefix('N').map_or(("", &*shape), |pairs| ("N", pairs));
    let (pairs, behind) = pairs.strip_suffix('m').map_or((pairs, ""), |pairs| (pairs, "m"));
    if pairs.len() >= 6 && pairs.replace("mN", "").is_empty() {
        return format!("{before}(mN)*{behind}");
    }
    shape
}
