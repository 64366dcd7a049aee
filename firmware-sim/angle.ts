/**
 * Sine and cosine of whole turns of the compass. They are ours because the language leaves the last bit of its own to
 * each engine, and Node's has changed it: a seed shall give the same bytes with every version. What is used here (sums,
 * products, remainders) is exact by IEEE 754.
 */

const RADIANS_PER_DEGREE = Math.PI / 180;

/** Of an angle in degrees. */
export function sineOf(degrees: number): number {
  return turned(degrees, 0);
}

/** Of an angle in degrees. */
export function cosineOf(degrees: number): number {
  return turned(degrees, 1);
}

/** The sine of the angle and so many quarter turns more, from the nearest quarter turn: at most 45° away. */
function turned(degrees: number, quartersMore: number): number {
  const within = degrees % 360;
  const quarters = Math.round(within / 90);
  const rest = (within - quarters * 90) * RADIANS_PER_DEGREE;
  const quadrant = (quarters + quartersMore) & 3;
  const value = (quadrant & 1) === 0 ? smallSine(rest) : smallCosine(rest);
  return quadrant >= 2 ? -value : value;
}

/** The coefficients of fdlibm's kernels (Sun Microsystems, 1993), good to the last bits within ±45°. */
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
