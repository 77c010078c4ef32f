//! Converts a picture of a camera or a player to one of ROS.

use sinew_core::catalogue::MessageType;
use sinew_core::zerocopy::FromBytes;
use sinew_media::{PICTURE_BYTES_MAX, PictureHead, PixelFormat, planes_of};

use crate::definition::Bytes;
use crate::messages::Image;

const HEAD: usize = size_of::<PictureHead>();

/// Whether messages of this type are pictures.
pub(crate) fn is_picture(message: &MessageType) -> bool {
    message.name == "Picture" && message.size as usize == HEAD + PICTURE_BYTES_MAX
}

/// The picture in a message, without a header: colours as `rgb8`, luma alone as `mono8`. `None`:
/// there is no picture, or its head is not valid.
pub(crate) fn image(message: &[u8]) -> Option<Image> {
    let (head, points) = message.split_at_checked(HEAD)?;
    let head = PictureHead::read_from_bytes(head).ok()?;
    let format = head.check().ok()?;
    let (encoding, bytes) = match format {
        PixelFormat::Nothing => return None,
        PixelFormat::Gray8 => ("mono8", 1),
        _ => ("rgb8", 3),
    };
    let (width, height) = (head.width, head.height);
    let mut data = Vec::with_capacity((width * height * bytes) as usize);
    for y in 0..height {
        let row = |at: usize| {
            let row = head.row(planes_of(format)[at], at, y);
            &points[row.offset..][..row.len]
        };
        match format {
            PixelFormat::Gray8 | PixelFormat::Rgb24 => data.extend_from_slice(row(0)),
            _ => {
                let shift = planes_of(format)[1].columns_shift;
                let full = format != PixelFormat::Yuv420;
                let differences = row(1).iter().zip(row(2));
                let differences: Vec<_> = differences.collect();
                for (x, luma) in row(0).iter().enumerate() {
                    let (blue, red) = differences[x >> shift];
                    data.extend_from_slice(&colour(*luma, *blue, *red, full));
                }
            }
        }
    }
    Some(Image {
        height,
        width,
        encoding: encoding.to_owned(),
        step: width * bytes,
        data: Bytes(data),
        ..Image::default()
    })
}

/// Red, green and blue by ITU-R BT.601, in 65 536ths. `full`: luma and differences are 0 to 255.
fn colour(luma: u8, blue: u8, red: u8, full: bool) -> [u8; 3] {
    let (y, b, r) = (i32::from(luma), i32::from(blue) - 128, i32::from(red) - 128);
    let (y, to_red, to_green, to_blue) = match full {
        true => (y << 16, 91_881 * r, -22_554 * b - 46_802 * r, 116_130 * b),
        false => ((y - 16) * 76_309, 104_597 * r, -25_675 * b - 53_279 * r, 132_201 * b),
    };
    [to_red, to_green, to_blue].map(|part| ((y + part + (1 << 15)) >> 16).clamp(0, 255) as u8)
}

#[cfg(test)]
mod tests;
