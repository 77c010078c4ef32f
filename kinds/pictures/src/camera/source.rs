//! Sources of frames. For a camera that Sinew does not know, write a type that implements
//! [`FrameSource`], a [`Kind`](sinew_core::catalogue::Kind) with the ports of
//! [`INFO`](super::INFO), and a [`Camera`](super::Camera) made with both.

use sinew_core::Fault;
use sinew_robot::kinematics::Joints;

use super::image::PixelRow;

/// What is known of a frame before it is taken.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shot {
    /// When it is taken, monotonic ns.
    pub time_ns: u64,
    /// Its number, as in `PictureHead::number`.
    pub number: u64,
    /// Time of the last pose, monotonic ns; before the first one, the camera's start.
    pub pose_ns: u64,
}

/// A source of frames. A fault ends the camera's domain, which is restarted by its restart policy.
pub trait FrameSource: Send {
    /// Called once, before the first frame: opens and prepares what takes time.
    ///
    /// # Errors
    /// Why there can be no frames, and what to change.
    fn start(&mut self) -> Result<(), Fault> {
        Ok(())
    }

    /// The joints are at these angles, all finite.
    fn moved(&mut self, _time_ns: u64, _joints: &Joints) {}

    /// Called before each frame: returns whether there are no more frames. The camera then ends
    /// successfully.
    ///
    /// # Errors
    /// As for [`FrameSource::frame`].
    fn is_over(&mut self) -> Result<bool, Fault> {
        Ok(false)
    }

    /// Takes a frame and passes each row (0 is the top) to `put` once. May wait for a device, but
    /// less than the limit of the heartbeat.
    ///
    /// # Errors
    /// The device is gone or sends invalid data; none of the rows is valid then.
    fn frame(&mut self, shot: &Shot, put: &mut dyn FnMut(usize, &PixelRow)) -> Result<(), Fault>;

    /// Called if there is no room for the frame that is due: takes and drops the frame, so that the
    /// next one is not an old one.
    ///
    /// # Errors
    /// As for [`FrameSource::frame`].
    fn skip(&mut self) -> Result<(), Fault> {
        Ok(())
    }
}
