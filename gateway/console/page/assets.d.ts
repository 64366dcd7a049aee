/** Files that are no scripts: importing one gives its address (cli/prepare/pages.mjs). */

declare module '*.geojson' {
  const address: string;
  export = address;
}
declare module 'world-atlas/countries-110m.json' {
  const address: string;
  export = address;
}
declare module 'world-atlas/countries-50m.json' {
  const address: string;
  export = address;
}
