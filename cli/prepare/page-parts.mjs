// The parts of packages that the console's pages use: esbuild's plugins that leave out the rest of Leaflet and
// protobufjs, which is over half of them. Their modules register themselves when they are loaded, or assign methods to
// a prototype, so that a bundler can't leave out anything by itself. What these plugins expect and don't find fails the
// build instead of the page: versions of packages are pinned.
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { shrinkMapData } from './map-data.mjs';
import { pathInClone } from './workplace.mjs';

/** The parts of Leaflet that the map uses. Without this list, `import * as L from 'leaflet'` has all of it. */
const leafletParts = `
  import 'leaflet/src/layer/vector/Renderer.getRenderer.js';
  import 'leaflet/src/map/handler/Map.BoxZoom.js';
  import 'leaflet/src/map/handler/Map.DoubleClickZoom.js';
  import 'leaflet/src/map/handler/Map.Drag.js';
  import 'leaflet/src/map/handler/Map.Keyboard.js';
  import 'leaflet/src/map/handler/Map.ScrollWheelZoom.js';
  import 'leaflet/src/map/handler/Map.TouchZoom.js';
  import 'leaflet/src/control/Control.Zoom.js';
  import { control } from 'leaflet/src/control/Control.js';
  import { scale } from 'leaflet/src/control/Control.Scale.js';
  control.scale = scale;
  export { control };
  export { toLatLngBounds as latLngBounds } from 'leaflet/src/geo/LatLngBounds.js';
  export { canvas } from 'leaflet/src/layer/vector/Canvas.js';
  export { circle } from 'leaflet/src/layer/vector/Circle.js';
  export { circleMarker } from 'leaflet/src/layer/vector/CircleMarker.js';
  export { polygon } from 'leaflet/src/layer/vector/Polygon.js';
  export { polyline } from 'leaflet/src/layer/vector/Polyline.js';
  export { TileLayer } from 'leaflet/src/layer/tile/TileLayer.js';
  export { createMap as map } from 'leaflet/src/map/Map.js';
`;

/** Modules that Leaflet imports and our maps, which draw on a canvas, never use; and the code that replaces each. */
const unusedLeaflet = {
  './SVG': 'export const svg = () => null;',
};

/**
 * What generated code needs of `protobufjs/minimal.js` to decode. Without `long`, a 64-bit number is a JavaScript
 * number, which is what proto/wire/codec.ts makes of it in any case. `Reader._configure` adds the methods for such
 * numbers; it requires a reader for Node's Buffer, and gets an empty one.
 */
const protobufParts = `
  import util from 'protobufjs/src/util/minimal.js';
  import Reader from 'protobufjs/src/reader.js';
  Reader._configure({ _configure() {} });
  export default { Reader, util, roots: {} };
`;
/** Modules that `protobufjs/src/util/minimal.js` loads, and decoding does not use. */
const unusedProtobuf = /^(?:long|\.\/(?:aspromise|base64|eventemitter|float|pool))$/;
/** Methods of protobufjs's reader for types that lock.proto does not have: packed lists and floating point numbers. */
const unusedReads = /^Reader\.prototype\.(?:\w+(?:32|64|float|double|bool)s|float|double) = function[\s\S]*?^\};$/gm;
/** The functions of a generated message that make or write one. */
const unusedFunctions = /^( +)\w+\.(?:encode|create) = function[\s\S]*?^\1\};$/gm;
/** The generated messages of commands: pages read what locks sent. */
const unusedMessages =
  /^( +)v1\.(?:Downlink|Unlock|Lock|Siren|LocateGps|LocateCell|SetPower|Reset) = \(function[\s\S]*?^\1\}\)\(\);$/gm;

/** Leaflet without what the maps don't use. */
export const leafletPlugin = {
  name: 'leaflet-parts',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^leaflet$/ }, ({ path }) => ({ path, namespace: 'leaflet-parts' }));
    onLoad({ filter: /.*/, namespace: 'leaflet-parts' }, () => ({ contents: leafletParts, resolveDir: pathInClone() }));
    onResolve({ filter: /^\.\/SVG$/ }, ({ path, importer }) =>
      importer.endsWith('Renderer.getRenderer.js') ? { path, namespace: 'unused-leaflet' } : undefined,
    );
    onLoad({ filter: /.*/, namespace: 'unused-leaflet' }, ({ path }) => ({ contents: unusedLeaflet[path] }));
  },
};

/** protobufjs and the generated code, for decoding uplinks only. */
export const protobufPlugin = {
  name: 'protobuf-parts',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^protobufjs\/minimal\.js$/ }, ({ path }) => ({ path, namespace: 'protobuf-parts' }));
    onLoad({ filter: /.*/, namespace: 'protobuf-parts' }, () => ({
      contents: protobufParts,
      resolveDir: pathInClone(),
    }));
    onResolve({ filter: unusedProtobuf }, ({ path }) => ({ path, namespace: 'unused-protobuf', sideEffects: false }));
    // `long` is imported as an ES module by proto/, for writing only, and as a CommonJS module by protobufjs.
    onLoad({ filter: /.*/, namespace: 'unused-protobuf' }, () => ({ contents: 'module.exports = null;' }));
    onLoad({ filter: /protobufjs[\\/]src[\\/]reader\.js$/ }, ({ path }) => without(path, [unusedReads]));
    onLoad({ filter: /gen[\\/]lock\.js$/ }, ({ path }) => without(path, [unusedMessages, unusedFunctions]));
  },
};

/** Map data is fetched when a map is shown, so importing it gives its address. */
export const mapDataPlugin = {
  name: 'map-data',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^world-atlas\// }, ({ path }) => ({
      path: pathInClone('node_modules', path),
      namespace: 'map-data',
    }));
    onLoad({ filter: /.*/, namespace: 'map-data' }, ({ path }) => ({
      contents: shrinkMapData(basename(path), readFileSync(path, 'utf8')),
      loader: 'file',
    }));
  },
};

/** A file's text without what matches each pattern. */
function without(path, patterns) {
  let contents = readFileSync(path, 'utf8').replaceAll('\r\n', '\n');
  for (const pattern of patterns) {
    const rest = contents.replace(pattern, '');
    if (rest === contents) return { errors: [{ text: `${path} has no ${pattern}: adapt cli/prepare/page-parts.mjs` }] };
    contents = rest;
  }
  return { contents };
}
