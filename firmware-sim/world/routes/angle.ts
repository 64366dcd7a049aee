/**
 * Sine, cosine and arc tangent for compass directions. `Math.sin` and its relatives are not used: their last bit
 * differs between versions of Node, and a seed must give the same bytes with every version. The operations used here
 * (sums, products, quotients, remainders) are exactly specified by IEEE 754.
 */

const RADIANS_PER_DEGREE = Math.PI / 180;

/** The sine of an angle in degrees. */
export function sineOf(degrees: number): number {
  return sineAfterQuarterTurns(degrees, 0);
}

/** The cosine of an angle in degrees. */
export function cosineOf(degrees: number): number {
  return sineAfterQuarterTurns(degrees, 1);
}

/** The direction of an offset in metres east and north: degrees clockwise from north, [0, 360). */
export function directionOf(east: number, north: number): number {
  const [across, along] = [Math.abs(east), Math.abs(north)];
  if (across === 0 && along === 0) return 0;
  // The angle from the nearer axis, which is at most 45° away.
  const tangent = Math.min(across, along) / Math.max(across, along);
  const fromAxis = arcTangent(tangent) / RADIANS_PER_DEGREE;
  // From 0° to 90°: as if the offset were to the north-east; then mirrored into its quadrant.
  const fromNorth = across <= along ? fromAxis : 90 - fromAxis;
  const inEasternHalf = north >= 0 ? fromNorth : 180 - fromNorth;
  return (east >= 0 ? inEasternHalf : 360 - inEasternHalf) % 360;
}

/** The difference from one longitude to another in degrees east, the shorter way around the Earth: [-180, 180). */
export function degreesEast(fromDegrees: number, toDegrees: number): number {
  const degrees = toDegrees - fromDegrees;
  if (degrees >= -180 && degrees < 180) return degrees;
  return ((degrees + 540) % 360) - 180;
}

/** The arc tangent of a value in [0, 1], in radians. An angle above 22.5° is computed as a difference from 45°. */
function arcTangent(tangent: number): number {
  if (tangent > TANGENT_OF_22_5) return Math.PI / 4 - smallArcTangent((1 - tangent) / (1 + tangent));
  return smallArcTangent(tangent);
}

const TANGENT_OF_22_5 = 0.41421356237309503;

/** The sine of an angle plus some quarter turns, computed from the nearest quarter turn, which is at most 45° away. */
function sineAfterQuarterTurns(degrees: number, extraQuarters: number): number {
  const angle = degrees % 360;
  const quarters = Math.round(angle / 90);
  const remainder = (angle - quarters * 90) * RADIANS_PER_DEGREE;
  const quadrant = (quarters + extraQuarters) & 3;
  const value = (quadrant & 1) === 0 ? smallSine(remainder) : smallCosine(remainder);
  return quadrant >= 2 ? -value : value;
}

/** The sine within ±45°. This and the next two functions use the polynomials of fdlibm (Sun Microsystems, 1993). */
function smallSine(angle: number): number {
  const square = angle * angle;
  const tail =
    -0.16666666666666632 +
    square *
      (0.00833333333332249 +
        square *
          (-0.0001984126982985795 +
            square * (2.7557313707070068e-6 + square * (-2.5050760253406863e-8 + square * 1.58969099521155e-10))));
  return angle + angle * square * tail;
}

/** The cosine within ±45°. */
function smallCosine(angle: number): number {
  const square = angle * angle;
  const tail =
    0.0416666666666666 +
    square *
      (-0.001388888888887411 +
        square *
          (2.480158728947673e-5 +
            square * (-2.7557314351390663e-7 + square * (2.087572321298175e-9 + square * -1.1359647557788195e-11))));
  return 1 - (square / 2 - square * square * tail);
}

/** The arc tangent of a value in [0, 0.4375]. */
function smallArcTangent(tangent: number): number {
  const square = tangent * tangent;
  let sum = 0;
  for (const coefficient of ARC_TANGENT) sum = (sum + coefficient) * square;
  return tangent - tangent * sum;
}

/** The coefficients of the arc tangent's polynomial, from the highest power to the lowest. */
const ARC_TANGENT = [
  0.016285820115365782, -0.036531572744216916, 0.049768779946159324, -0.058335701337905735, 0.06661073137387531,
  -0.0769187620504483, 0.09090887133436507, -0.11111110405462356, 0.14285714272503466, -0.19999999999876483,
  0.3333333333333293,
] as const;
