//! The two loops that take the time, compiled twice: for AVX2 and for any machine. Both give the same bits.
//!
//! Plain loops are left to the compiler. It uses half the width of a register for the products, though, so that one
//! loop is written with intrinsics. What is unsafe is to call what was compiled for AVX2, after the processor was
//! asked, and to load a register from an array.
#![allow(
    unsafe_code,
    reason = "AVX2 after the processor was asked; loads from arrays of exactly a register's size"
)]

/// The widest row of the model: the buffer for one unpacked row of weights lives on the stack.
const MAX_WIDTH: usize = 1536;

/// Products in one AVX2 instruction.
#[cfg(target_arch = "x86_64")]
const STEP: usize = 16;

/// Largest quantised activation. 1536 products of it with an int8 stay below 2^31.
pub(super) const ACTIVATION_LIMIT: f32 = 8191.0;

/// Dot products of every row of `weights` (int8) with every row of `activations`, both `width` long. `sums` takes
/// them row of weights by row of weights.
pub(super) fn multiply(activations: &[i16], weights: &[u8], width: usize, sums: &mut [i32]) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2, which is all the function asks for.
        unsafe { multiply_avx2(activations, weights, width, sums) };
        return;
    }
    multiply_anywhere(activations, weights, width, sums);
}

/// GELU in place.
pub(super) fn gelu(values: &mut [f32]) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2, which is all the function asks for.
        unsafe { gelu_avx2(values) };
        return;
    }
    gelu_anywhere(values);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn multiply_avx2(activations: &[i16], weights: &[u8], width: usize, sums: &mut [i32]) {
    if width == 0 || !width.is_multiple_of(STEP) {
        return multiply_anywhere(activations, weights, width, sums);
    }
    let tokens = activations.len() / width;
    for (packed, sums) in weights.chunks_exact(width).zip(sums.chunks_exact_mut(tokens.max(1))) {
        let (packed, _) = packed.as_chunks::<STEP>();
        let mut rows = activations.chunks_exact(width).map(|row| row.as_chunks::<STEP>().0);
        let (fours, rest) = sums.as_chunks_mut::<4>();
        for four in fours {
            if let (Some(a), Some(b), Some(c), Some(d)) = (rows.next(), rows.next(), rows.next(), rows.next())
            {
                *four = avx2::dots(packed, [a, b, c, d]);
            }
        }
        for (sum, row) in rest.iter_mut().zip(rows) {
            let [one] = avx2::dots(packed, [row]);
            *sum = one;
        }
    }
}

/// The intrinsics.
#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::{
        __m256i, _mm_loadu_si128, _mm256_add_epi32, _mm256_cvtepi8_epi16, _mm256_loadu_si256,
        _mm256_madd_epi16, _mm256_setzero_si256, _mm256_storeu_si256,
    };

    use super::STEP;

    /// Dot products of one row of weights with `COUNT` rows of activations: the unpacked weights serve all of them.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn dots<const COUNT: usize>(
        weights: &[[u8; STEP]],
        rows: [&[[i16; STEP]]; COUNT],
    ) -> [i32; COUNT] {
        let mut sums = [_mm256_setzero_si256(); COUNT];
        let mut rows = rows.map(<[_]>::iter);
        for packed in weights {
            // SAFETY: the array is 16 bytes long, and the load asks for no alignment.
            let weight = _mm256_cvtepi8_epi16(unsafe { _mm_loadu_si128(packed.as_ptr().cast()) });
            for (sum, row) in sums.iter_mut().zip(&mut rows) {
                let Some(chunk) = row.next() else { continue };
                // SAFETY: the array is 32 bytes long, and the load asks for no alignment.
                let activation = unsafe { _mm256_loadu_si256(chunk.as_ptr().cast()) };
                *sum = _mm256_add_epi32(*sum, _mm256_madd_epi16(activation, weight));
            }
        }
        sums.map(|sum| total(sum))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn total(sum: __m256i) -> i32 {
        let mut lanes = [0_i32; 8];
        // SAFETY: the array is 32 bytes long, and the store asks for no alignment.
        unsafe { _mm256_storeu_si256(lanes.as_mut_ptr().cast(), sum) };
        lanes.iter().fold(0, |sum: i32, lane| sum.wrapping_add(*lane))
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn gelu_avx2(values: &mut [f32]) {
    gelu_anywhere(values);
}

#[inline(always)]
pub(super) fn multiply_anywhere(activations: &[i16], weights: &[u8], width: usize, sums: &mut [i32]) {
    let mut buffer = [0_i16; MAX_WIDTH];
    let Some(row) = buffer.get_mut(..width) else { return };
    let tokens = activations.len() / width.max(1);
    for (packed, sums) in weights.chunks_exact(width).zip(sums.chunks_exact_mut(tokens.max(1))) {
        for (wide, byte) in row.iter_mut().zip(packed) {
            *wide = i16::from(byte.cast_signed());
        }
        for (activation, sum) in activations.chunks_exact(width).zip(sums) {
            // INVARIANT: no overflow, see ACTIVATION_LIMIT; wrapping keeps the release profile's checks out of it.
            *sum = activation
                .iter()
                .zip(row.iter())
                .fold(0, |sum: i32, (a, w)| sum.wrapping_add(i32::from(*a).wrapping_mul(i32::from(*w))));
        }
    }
}

#[inline(always)]
pub(super) fn gelu_anywhere(values: &mut [f32]) {
    for value in values {
        *value *= 0.5 * (1.0 + error_function(*value * std::f32::consts::FRAC_1_SQRT_2));
    }
}

/// Abramowitz and Stegun 7.1.26, good to seven digits, with an exponential that the compiler can vectorise.
#[inline(always)]
fn error_function(x: f32) -> f32 {
    let size = x.abs();
    let t = 1.0 / (1.0 + 0.327_591_1 * size);
    let polynomial =
        ((((1.061_405_4 * t - 1.453_152_1) * t + 1.421_413_8) * t - 0.284_496_74) * t + 0.254_829_6) * t;
    (1.0 - polynomial * exponential(-size * size)).copysign(x)
}

/// e^x for x <= 0: 2^n by its bits, the rest by a polynomial.
#[inline(always)]
fn exponential(x: f32) -> f32 {
    let scaled = x.max(-87.0) * std::f32::consts::LOG2_E;
    let whole = rounded(scaled);
    let part = (scaled - whole) * std::f32::consts::LN_2;
    let series =
        1.0 + part * (1.0 + part * (0.5 + part * (1.0 / 6.0 + part * (1.0 / 24.0 + part * (1.0 / 120.0)))));
    #[expect(clippy::cast_possible_truncation, reason = "a whole number between -126 and 0")]
    let power = f32::from_bits(((whole as i32).wrapping_add(127) as u32) << 23);
    series * power
}

/// The nearest whole number of a small one. Adding and taking away 1.5 * 2^23 does it without a call.
#[inline(always)]
pub(super) fn rounded(value: f32) -> f32 {
    (value + 12_582_912.0) - 12_582_912.0
}

#[cfg(test)]
#[path = "kernel_tests.rs"]
mod tests;
