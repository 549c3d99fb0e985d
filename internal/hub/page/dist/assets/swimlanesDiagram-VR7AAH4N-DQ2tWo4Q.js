import{createFlowDiagram as e,styles_default as t}from"./mermaid-CUuNUspF.js";import"./mermaid-BqMVm9Sc.js";import"./mermaid-pFpDdUbk.js";import"./mermaid--Kn8ndka.js";import"./mermaid-dgiyVUJe.js";import"./mermaid-C--YJvLG.js";import"./mermaid-B96ITfa6.js";import"./mermaid-CMBm5zRy.js";import"./mermaid-2lohMGtO.js";import"./mermaid-Dnu_2psu.js";import"./mermaid-Wv7SNTaG.js";import"./mermaid-BASF8MVr.js";import"./mermaid-_oSK_bQv.js";import"./mermaid-CPikgrRF.js";import{__name as n}from"./mermaid-C4Ysjpgl.js";var r=e({defaultLayout:`swimlane`,styles:n(e=>`${t(e)}
  .swimlane.cluster rect {
    stroke: ${e.clusterBorder} !important;
  }
  [data-look="neo"].cluster rect {
    filter: none;
  }
`,`getStyles`)});export{r as diagram};