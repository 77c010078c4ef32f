//! Where frames come from. A camera that Sinew does not know is a type that implements
//! [`FrameSource`], a [`Kind`](sinew_core::catalogue::Kind) with the ports of
//! [`INFO`](super::INFO), and a [`Camera`](super::Camera) made with both.

use sinew_core::Fault;
use sinew_robot::kinematics::Joints;

use super::image::PixelRow;

/// What is known of a frame before it is there.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shot {
    /// When it is taken, monotonic ns.
    pub time_ns: u64,
    /// Its number, as in `PictureHead::number`.
    pub number: u64,
    /// When a pose was heard last, monotonic ns; before the first one, when the camera began.
    pub pose_ns: u64,
}

/// A source of frames. A fault ends the camera's domain, which comes back by its restart policy.
pub trait FrameSource: Send {
    /// Once, before the first frame: opens and prepares what takes its time.
    ///
    /// # Errors
    /// Why there can be no frames, and what to change.
    fn start(&mut self) -> Result<(), Fault> {
        Ok(())
    }

    /// The joints stand at these angles, all finite.
    fn moved(&mut self, _time_ns: u64, _joints: &Joints) {}

    /// Asked before each frame: whether there are no more. Then the camera's work is done.
    ///
    /// # Errors
    /// As for [`FrameSource::frame`].
    fn is_over(&mut self) -> Result<bool, Fault> {
        Ok(false)
    }

    /// Takes a frame and hands out each row (0 is the top), once. May wait for a device, but not
    /// as long as a heartbeat may take.
    ///
    /// # Errors
    /// The device is gone or talks nonsense; no row counts then.
    fn frame(&mut self, shot: &Shot, put: &mut dyn FnMut(usize, &PixelRow)) -> Result<(), Fault>;

    /// There is no room for the frame that is due: takes it and forgets it, so that the next one
    /// will not be an old one.
    ///
    /// # Errors
    /// As for [`FrameSource::frame`].
    fn skip(&mut self) -> Result<(), Fault> {
        Ok(())
    }
}
