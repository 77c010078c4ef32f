#!/bin/sh
# Makes films to play, of FFmpeg's test pictures and tones, 640 x 352 points, 25 pictures a second:
#
#   graphs/dual_os/make_films.sh [seconds]
#
# film_xvid.avi   MPEG-4 (Xvid) with MP3, as in the paper
# film_jpeg.avi   Motion JPEG with PCM, which the guest decodes too
set -eu
cd "$(dirname "$0")"
seconds=${1:-60}
command -v ffmpeg >/dev/null || { echo "ffmpeg is missing; apt-get install ffmpeg" >&2; exit 1; }
picture="testsrc2=size=640x352:rate=25:duration=$seconds"
# A tone that rises and falls, left and right apart, so that the level moves.
tone="aevalsrc=0.4*sin(440*2*PI*t)*sin(PI*t/2)|0.4*sin(660*2*PI*t)*cos(PI*t/2):s=44100:d=$seconds"
make() { # make FILE OPTIONS...
    file=$1
    shift
    ffmpeg -v error -y -f lavfi -i "$picture" -f lavfi -i "$tone" "$@" "$file.part.avi"
    mv "$file.part.avi" "$file"
    echo "graphs/dual_os/$file"
}
make film_xvid.avi -c:v mpeg4 -vtag xvid -q:v 4 -g 12 -c:a mp3 -b:a 128k
make film_jpeg.avi -c:v mjpeg -q:v 5 -pix_fmt yuvj420p -c:a pcm_s16le
