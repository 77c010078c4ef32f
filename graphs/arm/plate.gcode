%
(A plate of 120 x 80 mm with rounded corners and a hole; zero is the plate's lower left corner.)
(Run it with: path: plate.gcode, work_origin_mm: [290, -40, 340])
G21 G90 G17         ; mm, absolute, arcs in XY
G0 X10 Y0 Z20       ; above the start
G1 Z0 F3000
G1 X110 Y0 F9000
G3 X120 Y10 I0 J10  ; corners by their centre ...
G1 X120 Y70
G3 X110 Y80 R10     ; ... or by their radius
G1 X10
G3 X0 Y70 I0 J-10
G1 Y10
G3 X10 Y0 R10
G0 Z20
G0 X80 Y40
G1 Z0 F3000
G2 X80 Y40 I-20 J0 F6000 ; the hole: a full circle, clockwise
G0 Z20
M2
