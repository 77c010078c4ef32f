// The arm in three dimensions. Draws only when something changed, and not in a hidden tab.

import {
  CircleGeometry, Color, DirectionalLight, GridHelper, HemisphereLight,
  type InterleavedBuffer, type InterleavedBufferAttribute, Mesh, PCFShadowMap, PerspectiveCamera, Scene, ShadowMaterial, Vector3, WebGLRenderer,
} from "three";
import { OrbitControls } from "three/addons/controls/OrbitControls.js";
import { Line2 } from "three/addons/lines/Line2.js";
import { LineGeometry } from "three/addons/lines/LineGeometry.js";
import { LineMaterial } from "three/addons/lines/LineMaterial.js";
import type { ArmModel } from "./arm_model";
import { clothe, materials, type Materials } from "./arm_shape";
import { styled } from "./dom";
import type { View } from "./drawing";
import { mark, markPicture } from "./marks";
import { Trace } from "./trace";

/** Pixels of the screen per pixel of the page, at most: more costs and shows nothing. */
const PIXEL_RATIO_MAX = 2;

/** Renderers that are programs: SwiftShader, Mesa's llvmpipe, Windows' and Apple's. */
const SOFTWARE = /swiftshader|llvmpipe|softpipe|basic render|software/i;

/** Throws where there is no WebGL. */
export function webglView(canvas: HTMLCanvasElement, arm: ArmModel, trace: Trace): View {
  const renderer = new WebGLRenderer({ canvas, antialias: true, alpha: true });
  mark("context");
  const plain = isSoftware(renderer.getContext());
  renderer.shadowMap.enabled = !plain;
  renderer.shadowMap.type = PCFShadowMap;
  return new WebglView(renderer, plain, canvas, arm, trace);
}

/** Whether the processor has to draw. It then draws without shadows, in simple materials and no
 * finer than the page: that is the difference between nine and twenty pictures a second. */
function isSoftware(gl: WebGLRenderingContext | WebGL2RenderingContext): boolean {
  const named = gl.getExtension("WEBGL_debug_renderer_info");
  return SOFTWARE.test(String(gl.getParameter(named?.UNMASKED_RENDERER_WEBGL ?? gl.RENDERER)));
}

class WebglView implements View {
  private readonly scene = new Scene();
  private readonly camera = new PerspectiveCamera(34, 1, 0.01, 50);
  private readonly controls: OrbitControls;
  private readonly of: Materials;
  private readonly line = traceLine();
  private readonly points = new Float32Array(Trace.MAX * 3);
  private grid: GridHelper | null = null;
  private compiled = false;
  private asked = false;

  constructor(
    private readonly renderer: WebGLRenderer,
    private readonly plain: boolean,
    private readonly canvas: HTMLCanvasElement,
    private readonly arm: ArmModel,
    private readonly trace: Trace,
  ) {
    this.of = materials(plain);
    clothe(arm, this.of);
    const size = arm.length_m;
    this.scene.add(arm.root, ...lights(size));
    if (!plain) this.scene.add(floor(size));
    this.camera.up.set(0, 0, 1);
    this.controls = new OrbitControls(this.camera, canvas);
    this.controls.enablePan = false;
    this.controls.minDistance = size * 0.8;
    this.controls.maxDistance = size * 5;
    this.controls.maxPolarAngle = Math.PI * 0.53;
    this.controls.addEventListener("change", () => this.changed());
    new ResizeObserver(() => this.changed()).observe(canvas);
    this.home();
    this.recolour();
    void this.compile();
  }

  /** Has the shaders compiled while the page does other work. The trace is empty at first, so its
   * shaders come after those of the arm. */
  private async compile(): Promise<void> {
    await this.renderer.compileAsync(this.scene, this.camera);
    mark("shaders");
    this.compiled = true;
    this.changed();
    await this.renderer.compileAsync(this.line, this.camera, this.scene);
    this.scene.add(this.line);
  }

  home(): void {
    const size = this.arm.length_m;
    this.controls.target.set(size * 0.2, 0, size * 0.36);
    this.camera.position.set(size * 1.45, -size * 1.4, size * 0.95);
    this.controls.update();
    this.changed();
  }

  orbit(turn_rad: number, tilt_rad: number, zoom: number): void {
    const from = this.camera.position.clone().sub(this.controls.target);
    from.applyAxisAngle(this.camera.up, turn_rad);
    const side = new Vector3().crossVectors(this.camera.up, from).normalize();
    from.applyAxisAngle(side, tilt_rad).multiplyScalar(zoom);
    this.camera.position.copy(this.controls.target).add(from);
    this.controls.update();
    this.changed();
  }

  recolour(): void {
    this.of.body.color.set(styled("--arm-body"));
    this.of.housing.color.set(styled("--arm-housing"));
    this.of.ring.color.set(styled("--arm-ring"));
    if (this.grid) this.scene.remove(this.grid);
    this.grid?.dispose();
    const size = this.arm.length_m * 3.2;
    this.grid = new GridHelper(size, 16, styled("--grid-axis"), styled("--grid"));
    this.grid.rotation.x = Math.PI / 2;
    this.grid.position.z = -0.0005;
    this.scene.add(this.grid);
    this.changed();
  }

  changed(): void {
    if (this.asked || !this.compiled) return;
    this.asked = true;
    requestAnimationFrame(() => {
      this.asked = false;
      this.draw();
    });
  }

  private draw(): void {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (width === 0 || height === 0) return;
    const ratio = Math.min(devicePixelRatio, this.plain ? 1 : PIXEL_RATIO_MAX);
    if (this.canvas.width !== Math.floor(width * ratio) || this.canvas.height !== Math.floor(height * ratio)) {
      this.renderer.setPixelRatio(ratio);
      this.renderer.setSize(width, height, false);
      this.camera.aspect = width / height;
      // A narrow view keeps the whole arm in sight.
      this.camera.fov = this.camera.aspect < 1 ? 34 / Math.max(this.camera.aspect, 0.5) : 34;
      this.camera.updateProjectionMatrix();
    }
    this.layTrace();
    this.renderer.render(this.scene, this.camera);
    markPicture(this.arm.pose);
  }

  /** Puts the line through the trace; it fades into the panel towards its oldest point. */
  private layTrace(): void {
    const count = this.trace.copy(this.points);
    const segments = Math.max(count - 1, 0);
    const [places, colours] = [this.column("instanceStart"), this.column("instanceColorStart")];
    const [new_, old] = [new Color(styled("--trace")), new Color(styled("--panel"))];
    const faded = new Color();
    for (let at = 0; at < segments; at++) {
      places.array.set(this.points.subarray(at * 3, at * 3 + 6), at * 6);
      for (const end of [0, 1]) {
        faded.lerpColors(old, new_, ((at + end) / count) ** 0.8);
        faded.toArray(colours.array, at * 6 + end * 3);
      }
    }
    places.needsUpdate = true;
    colours.needsUpdate = true;
    this.line.geometry.instanceCount = segments;
  }

  /** The line's numbers under this name: six for each of its segments. */
  private column(name: string): InterleavedBuffer {
    return (this.line.geometry.getAttribute(name) as InterleavedBufferAttribute).data;
  }
}

function traceLine(): Line2 {
  const geometry = new LineGeometry();
  geometry.setPositions(new Float32Array(Trace.MAX * 3));
  geometry.setColors(new Float32Array(Trace.MAX * 3));
  const line = new Line2(geometry, new LineMaterial({ linewidth: 2.5, vertexColors: true }));
  // A new lap is drawn over the old one: the newer points win, whatever their depth.
  line.material.transparent = true;
  line.material.depthWrite = false;
  // The line's bounds change with every point, and it is small and almost always in sight.
  line.frustumCulled = false;
  return line;
}

/** What the arm's shadow falls on. */
function floor(size: number): Mesh {
  const floor = new Mesh(new CircleGeometry(size * 1.6, 64), new ShadowMaterial({ opacity: 0.22 }));
  floor.receiveShadow = true;
  return floor;
}

function lights(size: number): (HemisphereLight | DirectionalLight)[] {
  const sun = new DirectionalLight(0xffffff, 2.6);
  sun.position.set(size * 1.2, -size * 0.9, size * 2.4);
  sun.castShadow = true;
  sun.shadow.mapSize.set(1024, 1024);
  sun.shadow.radius = 4;
  const reach = size * 1.3;
  Object.assign(sun.shadow.camera, { left: -reach, right: reach, top: reach, bottom: -reach, far: size * 6 });
  const rim = new DirectionalLight(0xbfd9ff, 0.9);
  rim.position.set(-size * 2, size * 1.4, size);
  return [new HemisphereLight(0xffffff, 0x6b7580, 1.5), sun, rim];
}
