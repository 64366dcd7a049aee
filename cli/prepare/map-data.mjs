// Makes the map's data small at the build: Natural Earth's countries (world-atlas, TopoJSON) without names, with fewer
// points and coarser coordinates. The result is TopoJSON again. Each arc is simplified on its own and keeps its ends:
// neighbours still share their borders.

/**
 * How far the data of each file is reduced. Points whose triangle with their neighbours is smaller than `areaKm2` are
 * left out; `stepDegrees` is the grid of the coordinates, which must divide 180. The page shows the coarse data up to a
 * scale where a pixel has 0.088°.
 */
const LEVELS = {
  'countries-110m.json': { areaKm2: 100, stepDegrees: 0.05 },
  'countries-50m.json': { areaKm2: 8, stepDegrees: 0.0125 },
};
const KM_PER_DEGREE = 111.2;
/** Beyond these latitudes there are a quarter of all points, but almost no streets: areas there count less. */
const POLAR = { north: 67, south: -60, weight: 1 / 20 };
/** Small islands keep five corners, so that they don't become triangles. A ring ends where it starts. */
const MIN_RING_POINTS = 6;
/** No side gets wider than this: the page takes a side wider than 180° for one that crosses 180° east. */
const MAX_SIDE_DEGREES = 90;

/** The reduced data of a file of world-atlas, as JSON. */
export function shrinkMapData(fileName, text) {
  const { areaKm2, stepDegrees } = LEVELS[fileName];
  const { objects, arcs, transform } = JSON.parse(text);
  const geometries = objects.countries.geometries.map(({ type, arcs }) => ({ type, arcs }));
  return JSON.stringify({
    type: 'Topology',
    transform: { scale: [stepDegrees, stepDegrees], translate: [-180, -90] },
    objects: { countries: { type: 'GeometryCollection', geometries } },
    arcs: arcs.map((arc) => toSteps(simplified(toDegrees(arc, transform), areaKm2), stepDegrees)),
  });
}

/** The points of an arc as [longitude, latitude], degrees. The file has each as its distance from the one before. */
function toDegrees(arc, { scale, translate }) {
  let x = 0;
  let y = 0;
  return arc.map(([dx, dy]) => {
    x += dx;
    y += dy;
    return [x * scale[0] + translate[0], y * scale[1] + translate[1]];
  });
}

/** The line without its least important points: Visvalingam's algorithm, the smallest triangle first. */
function simplified(line, areaKm2) {
  const points = [...line];
  const isInside = (index) => index > 0 && index < points.length - 1;
  const areaAt = (index) => weightedKm2(points[index - 1], points[index], points[index + 1]);
  const areas = points.map((_, index) => (isInside(index) ? areaAt(index) : Infinity));
  const isRing = line[0].join() === line.at(-1).join();
  while (points.length > (isRing ? MIN_RING_POINTS : 2)) {
    const smallest = indexOfSmallest(areas);
    const area = areas[smallest];
    if (area >= areaKm2) break;
    points.splice(smallest, 1);
    areas.splice(smallest, 1);
    // The neighbours' triangles have changed. They don't count less than the removed one, so that they outlast it.
    for (const index of [smallest - 1, smallest]) if (isInside(index)) areas[index] = Math.max(area, areaAt(index));
  }
  return points;
}

function indexOfSmallest(values) {
  let smallest = 0;
  for (let index = 1; index < values.length; index++) if (values[index] < values[smallest]) smallest = index;
  return smallest;
}

/** The area of a triangle, square kilometres; less near the poles. */
function weightedKm2([x0, y0], [x1, y1], [x2, y2]) {
  if (Math.abs(x2 - x0) > MAX_SIDE_DEGREES) return Infinity;
  const squareDegrees = Math.abs((x1 - x0) * (y2 - y0) - (x2 - x0) * (y1 - y0)) / 2;
  const weight = y1 > POLAR.north || y1 < POLAR.south ? POLAR.weight : 1;
  return squareDegrees * Math.cos((y1 * Math.PI) / 180) * KM_PER_DEGREE ** 2 * weight;
}

/** The points as steps on the grid, each from the one before; of neighbours in the same place only one is left. */
function toSteps(points, stepDegrees) {
  const onGrid = points.map(([x, y]) => [Math.round((x + 180) / stepDegrees), Math.round((y + 90) / stepDegrees)]);
  let [x0, y0] = [0, 0];
  const steps = onGrid.map(([x, y]) => {
    const step = [x - x0, y - y0];
    [x0, y0] = [x, y];
    return step;
  });
  const different = steps.filter(([dx, dy], index) => index === 0 || dx !== 0 || dy !== 0);
  // A line has at least two points, even of an island that is smaller than the grid's steps.
  return different.length > 1 ? different : [different[0], [0, 0]];
}
