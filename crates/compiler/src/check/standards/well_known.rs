//! Numbers that mean the same to every reader: counting, time, angles, bytes, physics and mathematics.

/// Counting, the calendar, the clock and angles.
const PLAIN: [f64; 44] = [
    0.0,
    1.0,
    2.0,
    10.0,
    100.0,
    0.1,
    0.01,
    0.001,
    0.25,
    0.5,
    0.75,
    7.0,
    12.0,
    14.0,
    24.0,
    26.0,
    28.0,
    29.0,
    30.0,
    31.0,
    45.0,
    48.0,
    52.0,
    60.0,
    90.0,
    180.0,
    270.0,
    360.0,
    365.0,
    365.25,
    366.0,
    400.0,
    1440.0,
    3600.0,
    10_080.0,
    60_000.0,
    86_400.0,
    604_800.0,
    3_600_000.0,
    86_400_000.0,
    604_800_000.0,
    1_000.0,
    10_000.0,
    100_000.0,
];

/// Units of measurement, constants of nature, checksums and hashes.
const CONVERSIONS: [f64; 36] = [
    1e6,
    1e9,
    1e12,
    1e-6,
    1e-9,
    1.8,
    32.0,
    273.15,
    459.67,
    2.54,
    0.3048,
    3.280_84,
    0.9144,
    1.609_34,
    1.609_344,
    0.621_371,
    1.852,
    3.6,
    0.453_592,
    0.453_592_37,
    2.204_62,
    28.349_5,
    3.785_41,
    4.184,
    9.81,
    9.806_65,
    299_792_458.0,
    6_371.0,
    6_371_000.0,
    6_378_137.0,
    97.0,
    5_381.0,
    16_777_619.0,
    2_166_136_261.0,
    0.2126,
    0.7152,
];

/// π, e, the golden ratio, roots and logarithms.
const MATHEMATICS: [f64; 9] = [
    std::f64::consts::PI,
    std::f64::consts::TAU,
    std::f64::consts::E,
    1.618_033_988_749_895,
    std::f64::consts::SQRT_2,
    1.732_050_807_568_877,
    std::f64::consts::LN_2,
    std::f64::consts::LN_10,
    0.577_215_664_901_532,
];

/// True for a number that needs no name anywhere.
pub(super) fn is_well_known(value: f64, text: &str) -> bool {
    /// `3.14` and `2.72` are as good as more digits.
    const NEAR: f64 = 0.0025;
    let is_bit_pattern = text.len() > 2 && text.starts_with('0') && !text.starts_with("0.");
    is_bit_pattern
        || PLAIN.contains(&value)
        || CONVERSIONS.contains(&value)
        || is_power_of_two(value)
        || (value.fract() != 0.0 && MATHEMATICS.iter().any(|constant| (constant - value).abs() < NEAR))
}

/// `16`, `255`, `65536`: sizes and masks of machines.
fn is_power_of_two(value: f64) -> bool {
    const SMALLEST_MASK: f64 = 31.0;
    let is_power = |value: f64| {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the range is checked first"
        )]
        (value.fract() == 0.0
            && (1.0..=9_007_199_254_740_992.0).contains(&value)
            && (value as u64).is_power_of_two())
    };
    is_power(value) || (value >= SMALLEST_MASK && (is_power(value + 1.0) || is_power(value - 1.0)))
}

/// One digit: part of an algorithm more often than a rate or a limit.
pub(super) fn is_small(value: f64) -> bool {
    const LARGEST: f64 = 9.0;
    value.fract() == 0.0 && value.abs() <= LARGEST
}

/// The statuses of HTTP.
pub(super) fn is_status(value: f64) -> bool {
    value.fract() == 0.0 && (100.0..600.0).contains(&value)
}
