/** Style sheets, which the build bundles into one for each page (cli/prepare/pages.mjs). */

declare module '*.css';
