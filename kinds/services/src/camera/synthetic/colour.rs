//! Colours: as light adds up, and as a screen wants them (sRGB, IEC 61966-2-1).

use std::sync::LazyLock;

/// Amounts of red, green and blue light; 1 is white.
pub(super) type Colour = glam::Vec3A;

/// Steps in which light is coded: fine enough that none of the 256 codes is left out.
const STEPS: usize = 4096;

static CODES: LazyLock<[u8; STEPS + 1]> = LazyLock::new(|| {
    let code = |step: usize| (coded_part(step as f32 / STEPS as f32) * 255.0).round() as u8;
    std::array::from_fn(code)
});

static LIGHT: LazyLock<[f32; 256]> = LazyLock::new(|| {
    std::array::from_fn(|code| {
        let part = code as f32 / 255.0;
        if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
    })
});

fn coded_part(light: f32) -> f32 {
    if light <= 0.003_130_8 { light * 12.92 } else { 1.055 * light.powf(1.0 / 2.4) - 0.055 }
}

/// The code of a colour; what is brighter than white is white.
#[inline]
pub(super) fn coded(colour: Colour) -> [u8; 3] {
    let codes = &*CODES;
    // What is not a number becomes 0. A cast to 32 bits with a sign takes the fewest instructions.
    let steps = colour.max(Colour::ZERO).min(Colour::ONE) * STEPS as f32;
    let [red, green, blue] = steps.to_array().map(|step| (step as i32 as usize).min(STEPS));
    [codes[red], codes[green], codes[blue]]
}

/// The light of a code.
#[inline]
pub(super) fn light(code: [u8; 3]) -> Colour {
    let light = &*LIGHT;
    let [red, green, blue] = code;
    Colour::new(light[usize::from(red)], light[usize::from(green)], light[usize::from(blue)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_means_the_light_that_it_was_made_of() {
        for code in 0..=255 {
            // Half a step up: what is cut off does not matter then.
            let light = light([code; 3]) + Colour::splat(0.5 / STEPS as f32);
            assert!(coded(light)[0].abs_diff(code) <= 1, "{code}");
        }
        assert_eq!(coded(Colour::new(-1.0, 7.0, f32::NAN)), [0, 255, 0]);
    }
}
